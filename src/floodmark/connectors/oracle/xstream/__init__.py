"""The log as an XStream outbound server sends it: Oracle's Java interface, and the stream."""
