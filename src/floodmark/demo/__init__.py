"""The demo's small shop: its tables, a writer, and the comparison with what was captured."""
