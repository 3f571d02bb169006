"""Tries settings of Spark on a program, and tells which help it; proposes settings from its earlier runs."""
