"""Delta tables that are rebuilt: their shadows, and the commit that puts one in its table's place."""
