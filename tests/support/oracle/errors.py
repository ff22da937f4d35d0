"""Errors, with Oracle's numbers and texts."""

from __future__ import annotations

TEXTS = {
    1: "unique constraint violated",
    30: "User session ID does not exist.",
    54: "resource busy and acquire with NOWAIT specified or timeout expired",
    308: "cannot open archived log",
    310: "archived log contains sequence {}; sequence {} required",
    900: "invalid SQL statement",
    904: "invalid identifier",
    942: "table or view does not exist",
    1003: "no statement parsed",
    1008: "not all variables bound",
    1017: "invalid credential or not authorized; logon denied",
    1031: "insufficient privileges",
    1281: "invalid SCN range specified",
    1284: "file {} cannot be opened",
    1289: "cannot add duplicate logfile {}",
    1290: "cannot remove unlisted logfile {}",
    1291: "missing log file",
    1292: "no log file has been specified for the current LogMiner session",
    1295: "DB_ID mismatch between dictionary {} and logfiles",
    1306: "dbms_logmnr.start_logmnr() must be invoked before selecting from v$logmnr_contents",
    1307: "no LogMiner session is currently active",
    1325: "archive log mode must be enabled to build into the logstream",
    1371: "Complete LogMiner dictionary not found",
    1466: "unable to read data - table definition has changed",
    1555: 'snapshot too old: rollback segment number  with name "" too small',
    1722: "invalid number",
    1918: "user '{}' does not exist",
    1920: "user name '{}' conflicts with another user or role name",
    3113: "end-of-file on communication channel",
    6550: "line 1, column 7:\nPLS-00201: identifier '{}' must be declared",
    8181: "specified number is not a valid system change number",
    12170: "TNS:Connect timeout occurred",
    12514: "Cannot connect to database. Service {} is not registered with the listener",
    16000: "database or pluggable database open for read-only access",
    29280: "invalid directory object",
    65011: "Pluggable database {} does not exist.",
    65040: "operation not allowed from within a pluggable database",
}


class OracleError(Exception):
    """An error that the server answers with.

    Args:
        code: Oracle's number.
        details: what the text has in its places.
        text: instead of the number's own text.
    """

    def __init__(self, code: int, *details: object, text: str = "") -> None:
        self.code = code
        self.message = f"ORA-{code:05d}: {text or TEXTS[code].format(*details)}"
        super().__init__(self.message)
