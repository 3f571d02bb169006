"""The Java that Spark runs in: found, started and ended, and made to start faster."""
