"""``floodmark verify``: compares target tables with the source's, and repairs them."""
