"""Preflight checks of a MySQL or MariaDB source."""
