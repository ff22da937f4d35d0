"""Initial snapshots: all tables as of one read point."""
