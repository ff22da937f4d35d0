"""Capturing the binlog: the stream, cut into segments."""
