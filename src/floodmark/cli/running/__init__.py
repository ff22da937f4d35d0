"""``floodmark run``, and how other commands follow and stop queries."""
