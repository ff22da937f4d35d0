"""Changes of rows whose large values LogMiner shows apart from them."""
