"""Whether the log still is the one that was read."""
