"""Targets that Spark writes as Iceberg tables."""
