"""Captures the log: reads the replication stream and cuts it into segments."""
