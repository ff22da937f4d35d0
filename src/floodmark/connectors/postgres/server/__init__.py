"""The server around the tables: connections, catalogs, slots, publications, and whether all is as it must be."""
