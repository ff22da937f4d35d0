"""From the columns of rows to events and typed rows, whether they come from the log or from a table."""
