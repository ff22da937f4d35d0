"""Evaluates expressions in Spark's SQL on columns of records, as Spark does in ANSI mode."""
