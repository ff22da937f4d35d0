"""A stand-in for an XStream outbound server, over the redo of the model, and for the Java classes that lead to it.

The classes have the names, methods and constants that Oracle's reference of ``oracle.streams`` lists, as far as
Debezium or Floodmark calls them. What they do is our reading of that reference: nobody here has seen Oracle's own.
"""
