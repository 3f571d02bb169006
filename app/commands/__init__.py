"""The verbs of `spark-app`, one module each, and the one terminal style they share."""
