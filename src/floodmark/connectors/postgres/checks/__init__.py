"""Preflight checks of a PostgreSQL source."""
