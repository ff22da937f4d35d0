"""Iceberg tables whose rows Floodmark writes itself, in the format's third version; the catalogue's part is Java's."""
