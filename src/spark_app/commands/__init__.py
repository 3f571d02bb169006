"""The commands of `spark-app`, one module each, and their terminal output."""
