"""Makes change events and typed rows of the changed rows of any database."""
