"""Benchmarks against the reference clients; ``python -m benchmarks.run --help``."""
