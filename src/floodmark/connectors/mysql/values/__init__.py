"""Decodes the values of row events from the bytes of the binlog into columns."""
