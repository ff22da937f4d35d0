"""A toy database and its connector: the smallest example of what a connector must provide.

The database is in ``database`` and knows nothing of Floodmark; all other modules are the connector, in the folders that
Floodmark's own connectors have, too.
"""
