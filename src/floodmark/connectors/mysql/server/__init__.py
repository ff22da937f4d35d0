"""Ordinary connections to the server."""
