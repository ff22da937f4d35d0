"""The options of transforms and predicates, ``transforms.<name>.…`` and ``predicates.<name>.…``."""
