"""Incremental snapshots: tables that are read range by range of their key while the log goes on."""
