"""The project whose pipelines incidents run: it is copied to the container of the master."""
