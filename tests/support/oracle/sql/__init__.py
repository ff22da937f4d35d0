"""Statements: what they ask for, and the views that they read."""
