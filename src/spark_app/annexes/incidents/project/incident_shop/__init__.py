"""A shop of its own, so that no table and no series of a real pipeline gets what incidents plant."""
