"""A small shop: its tables, somebody who writes to them, and the comparison of what was captured."""
