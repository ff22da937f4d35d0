"""Iceberg tables that are rebuilt: their shadows, and the commit that puts a shadow's files in their place."""
