"""Spark's side: the data source, the planner, pipelines and ordering."""
