"""Transforms of Debezium's, a module each."""
