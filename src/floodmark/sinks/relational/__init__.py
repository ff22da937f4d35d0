"""Tables of relational databases that follow the source's: the sink ``jdbc``."""
