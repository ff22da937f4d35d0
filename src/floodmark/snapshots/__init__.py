"""Snapshots: reading what tables hold, at once or in pieces while the log goes on. Nothing here knows a database."""
