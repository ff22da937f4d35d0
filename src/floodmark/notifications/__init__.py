"""Notifications: what a query reports about its snapshots, and where it reports it."""
