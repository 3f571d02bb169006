"""The Spark programs that incidents run: each is copied to the container of the master, and imports nothing of here."""
