"""Samples of the stacks of an application's processes: taken while it runs, and shown by stage."""
