"""Signals: what users ask of a running query, and the channels that bring it."""
