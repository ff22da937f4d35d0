"""Capture and decoding of the binlog."""
