"""One file per rule, with all that is declared of it; the registry is this package."""
