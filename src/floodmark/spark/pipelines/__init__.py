"""Pipeline files: what they say, and the queries that they start."""
