"""Mines the log, in the driver."""
