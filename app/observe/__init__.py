"""A stranger's program, run unchanged with its Spark event log switched on."""
