"""A front that speaks Oracle's network protocol, for python-oracledb in thin mode.

The protocol isn't published; what is known of it here is what python-oracledb's own sources (``impl/thin``) read and
write. Only that client's dialect is understood.
"""
