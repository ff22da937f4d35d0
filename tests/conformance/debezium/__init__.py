"""Debezium itself, run as the reference that Floodmark's events are compared with."""
