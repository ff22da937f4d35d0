"""Snapshots: reading tables at once, or in ranges while the log goes on; independent of the database."""
