"""Keeps the rows of open transactions."""
