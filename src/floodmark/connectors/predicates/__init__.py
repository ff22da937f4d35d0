"""Conditions on rows that come as SQL from whoever may send signals, read by a grammar that allows little."""
