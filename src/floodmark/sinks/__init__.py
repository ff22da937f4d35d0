"""Targets that Floodmark writes itself, without a writer of Spark."""
