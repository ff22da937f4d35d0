"""Keeps prepared XA transactions until they are committed or rolled back."""
