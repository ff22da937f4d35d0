"""Streaming queries: planning micro-batches on the driver, reading them in tasks."""
