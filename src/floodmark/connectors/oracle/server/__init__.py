"""Ordinary connections, and what is asked over them."""
