"""Captures the binlog: cuts the stream into segments."""
