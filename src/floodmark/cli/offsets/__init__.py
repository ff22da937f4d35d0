"""The commands ``floodmark offsets …``."""
