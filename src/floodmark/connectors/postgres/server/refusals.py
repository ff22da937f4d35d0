"""Finds the cause of a refused connection in libpq's message, and what to do about it.

libpq tries each address of a host, and with ``sslmode=prefer`` each one with TLS and without, and reports all attempts.
A wrong password then looks like a missing line of ``pg_hba.conf``, since that is what the last attempt failed with.
"""

from __future__ import annotations

import re

_ANY = (
    "Check database.hostname, database.port, database.user, database.password, database.dbname, database.sslmode and "
    "the server's pg_hba.conf."
)
_LOGIN = "Correct database.user or database.password."
_TLS = "Correct database.sslmode and the files beside it (database.sslrootcert, database.sslcert, database.sslkey)."

# The first one that matches any attempt is the cause: that attempt came nearest to a session.
_CAUSES = [
    (re.compile(pattern), cure)
    for pattern, cure in (
        (r"no password supplied", "Give database.password."),
        (r"authentication failed for user|password authentication failed", _LOGIN),
        (r'database ".*" does not exist|permission denied for database', "Correct database.dbname."),
        (r'role ".*" does not exist|is not permitted to log in', "Correct database.user, or create the role: it needs "
         "LOGIN and REPLICATION."),
        (r"the database system is |too many (clients|connections)|remaining connection slots",
         "Wait until the server is ready, or end connections that are not needed."),
        (r"permission denied to start WAL sender|must be superuser or replication role",
         "As a superuser: ALTER ROLE … REPLICATION (Amazon RDS: GRANT rds_replication TO …)."),
        (r"no pg_hba.conf entry", "Allow the connection in the server's pg_hba.conf, or correct database.user, "
         "database.dbname or database.sslmode."),
        (r"invalid response to SSL negotiation|expected authentication request",
         "Correct database.hostname and database.port: another program than PostgreSQL seems to answer there."),
        (r"^No such file or directory", "Correct database.hostname, which names the directory of a socket, "
         "and database.port."),
        (r"certificate|does not support SSL|private key file", _TLS),
        (r"failed to resolve host|could not translate host name", "Correct database.hostname."),
        (r"Connection refused", "Correct database.hostname and database.port, and see that the server runs."),
        (r"timeout expired|timed out|No route to host|unreachable", "Correct database.hostname and database.port, let "
         "firewalls through, or raise connect.timeout.ms."),
    )
]  # fmt: skip
_ATTEMPT = re.compile(
    r"(- host: .*?, hostaddr: '[^']*': )?(connection (?:failed|is bad): )?"
    r"(connection to server (at|on socket) \"[^\"]*\"( \([^)]*\))?(, port \d+)? failed: )?(FATAL: +)?"
)
_CONTINUED = re.compile(r"\s|DETAIL:|HINT:")
"""Lines that continue the one before."""
_QUESTION = "Is the server running"
"""The beginning of libpq's hint, which is dropped: the cure covers it."""


def cause_of(text: str) -> tuple[str, str]:
    """Return the cause in libpq's message, as one line without a full stop, and what to do about it."""
    lines: list[str] = []
    for line in filter(str.strip, text.splitlines()):
        if lines and _CONTINUED.match(line):
            lines[-1] += "" if _QUESTION in line else f": {_CONTINUED.sub('', line, count=1).strip()}"
        else:
            lines.append(_ATTEMPT.sub("", line.strip(), count=1))
    for pattern, cure in _CAUSES:
        for line in lines:
            if pattern.search(line):
                return line.rstrip("."), cure
    # Another cause, or a server that speaks another language.
    return (lines[0].rstrip(".") if lines else "it gave no reason"), _ANY
