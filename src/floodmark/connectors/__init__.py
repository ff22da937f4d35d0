"""Connectors: one folder for each database, all implementing the same protocols (``contract``)."""
