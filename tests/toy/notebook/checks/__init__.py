"""Preflight checks."""
