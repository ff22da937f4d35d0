"""A stand-in for an OpenLogReplicator server, over the redo of the model.

It follows what release 1.9.0 does, as far as a client can notice: how messages are framed and numbered, which of them
it keeps, what a confirmation makes it forget, and what it knows after it was started again.
"""
