"""Verifies that the binlog still continues from the stored position."""
