"""Expressions on the fields of records, in Spark's SQL: what they may have, and what Groovy's and JavaScript's mean."""
