"""From changed rows of any database to change events and typed rows."""
