"""Parses the binlog format: single events and runs of events."""
