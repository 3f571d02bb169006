"""Runs any program unchanged with the event log of its Spark applications enabled."""
