"""From segments of the log to change events."""
