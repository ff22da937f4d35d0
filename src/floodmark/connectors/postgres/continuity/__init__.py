"""Verifies that the log continues from the stored position, and that the publication lets everything through."""
