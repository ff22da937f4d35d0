"""Log to events, in tasks."""
