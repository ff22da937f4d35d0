"""What may be shown of statements and URIs."""

from __future__ import annotations

import pytest

from floodmark.capture.files import open_filesystem
from floodmark.cli.logs import readable
from floodmark.errors import StateDirError
from floodmark.redact import shown_reason, shown_statement, shown_uri, without_uri_secrets

SECRET = "hunter22"


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        (f"SET my.password = '{SECRET}'", "SET …"),
        (f"-- {SECRET}\n /* {SECRET} */ alter role x password '{SECRET}'", "ALTER …"),
        (f"'{SECRET}'", "…"),
        ("", "…"),
    ],
)
def test_a_statement_is_shown_by_its_first_keyword(statement: str, shown: str) -> None:
    assert shown_statement(statement) == shown


@pytest.mark.parametrize(
    "reason",
    [
        f'syntax error at or near "{SECRET}"',
        f"You have an error in your SQL syntax near 'PASSWORD '{SECRET}'' at line 1",
        f"invalid value “x”: “{SECRET}”",
        f"bad «{SECRET}»\nLINE 1: '{SECRET}'",
    ],
)
def test_what_a_server_quotes_is_not_shown(reason: str) -> None:
    assert SECRET not in shown_reason(reason)
    assert shown_reason(reason).split()[0] == reason.split()[0]


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("/a/b?c", "/a/b?c"),
        (f"s3://key:{SECRET}@bucket/path?endpoint_override=host&secret_key={SECRET}", "s3://…@bucket/path?…"),
        ("s3://bucket/path", "s3://bucket/path"),
        (f"abfs://x@y/z?sas={SECRET}", "abfs://…@y/z?…"),
    ],
)
def test_a_uri_is_shown_without_its_secrets(uri: str, shown: str) -> None:
    assert shown_uri(uri) == shown
    if SECRET in uri:
        assert SECRET not in without_uri_secrets(uri, f"cannot open {uri}: the key {SECRET} is wrong")


def test_a_state_dir_that_cannot_be_opened_shows_no_secret() -> None:
    with pytest.raises(StateDirError) as caught:
        open_filesystem(f"nonsense://key:{SECRET}@bucket/path?x={SECRET}")
    assert SECRET not in str(caught.value)


def test_a_line_of_the_log_stays_one_line() -> None:
    line = readable('{"level": "info", "event": "signal_message", "message": "x\\nerror forged \\u001b[31m"}')
    assert line == r"info signal_message message=x\nerror forged \x1b[31m"
