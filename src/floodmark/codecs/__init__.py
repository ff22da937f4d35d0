"""Encodes the values of any database's columns as JSON text or Arrow arrays."""
