"""From segments of the binlog to change events."""
