"""Spark integration: the data source, the planner, pipelines and ordering."""
