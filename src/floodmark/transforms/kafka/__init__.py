"""Transforms of Kafka Connect's own, a module each."""
