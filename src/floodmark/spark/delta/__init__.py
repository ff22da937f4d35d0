"""Targets that Spark writes with Delta's runtime."""
