"""Batch reads: ``spark.read.format("floodmark")``."""
