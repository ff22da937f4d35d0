"""Connectors: one folder a database, all filling in the same protocols (``base``)."""
