"""The one cause in what libpq says of connections that could not be opened."""

from __future__ import annotations

import pytest

from floodmark.connectors.postgres.server.refusals import cause_of

AT = 'connection to server at "127.0.0.1", port 5432 failed: '


@pytest.mark.parametrize(
    ("text", "cause", "cure"),
    [
        (
            f'connection failed: {AT}FATAL:  password authentication failed for user "cdc"\n'
            f'{AT}FATAL:  no pg_hba.conf entry for host "10.0.0.5", user "cdc", database "shop", no encryption',
            'password authentication failed for user "cdc"',
            "Correct database.user or database.password.",
        ),
        (
            "connection failed: connection to server at \"::1\", port 5432 failed: Connection refused\n"
            "\tIs the server running on that host and accepting TCP/IP connections?\n"
            "Multiple connection attempts failed. All failures were:\n"
            "- host: 'localhost', port: '5432', hostaddr: '::1': connection failed: connection to server at \"::1\", "
            "port 5432 failed: Connection refused\n"
            "- host: 'localhost', port: '5432', hostaddr: '127.0.0.1': connection failed: "
            f'{AT}FATAL:  database "shp" does not exist',
            'database "shp" does not exist',
            "Correct database.dbname.",
        ),
        (
            f"connection failed: {AT}FATAL:  permission denied to start WAL sender\n"
            "DETAIL:  Only roles with the REPLICATION attribute may start a WAL sender process.",
            "permission denied to start WAL sender: Only roles with the REPLICATION attribute",
            "ALTER ROLE … REPLICATION",
        ),
        (f'connection failed: {AT}FATAL:  role "cdk" does not exist', 'role "cdk" does not exist', "database.user"),
        (f"connection failed: {AT}fe_sendauth: no password supplied", "no password supplied", "database.password."),
        (f"connection failed: {AT}Connection refused\n\tIs the server running?", "Connection refused", "database.port"),
        ("failed to resolve host 'db.': [Errno -2] Name or service not known", "resolve host", "database.hostname."),
        (f"connection failed: {AT}server does not support SSL, but SSL was required", "SSL", "database.sslmode"),
        ("connection timeout expired", "connection timeout expired", "connect.timeout.ms"),
        (f"connection failed: {AT}FATAL:  sorry, too many clients already", "too many clients", "Wait"),
        (f"connection failed: {AT}FATAL:  Datenbank existiert nicht.", "Datenbank existiert nicht", "database.dbname"),
        ("", "no reason", "pg_hba.conf"),
    ],
)  # fmt: skip
def test_the_cause_is_one_line(text: str, cause: str, cure: str) -> None:
    found, do = cause_of(text)
    assert cause in found
    assert cure in do
    assert "\n" not in found
    assert "connection to server" not in found
    assert "FATAL" not in found
