"""Capturing the log: the replication stream, cut into segments."""
