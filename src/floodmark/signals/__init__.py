"""Signals: requests of users to a running query, and the channels that deliver them."""
