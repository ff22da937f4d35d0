"""The log as OpenLogReplicator sends it: the client of its network protocol, and the stream."""
