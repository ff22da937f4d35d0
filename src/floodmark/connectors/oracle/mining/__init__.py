"""LogMiner: what is asked of it."""
