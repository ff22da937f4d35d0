"""Ordinary connections to the server: catalogs, slots, publications, and the settings of tables."""
