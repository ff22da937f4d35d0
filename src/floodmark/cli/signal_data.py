"""The data of a signal, from the options of ``floodmark signal``."""

from __future__ import annotations

from collections.abc import Sequence

from floodmark.errors import ConfigError
from floodmark.json_data import Json
from floodmark.signals.records import BLOCKING, ExecuteSnapshot, StopSnapshot


def signal_data(
    kind: str,
    tables: Sequence[str] | None,
    conditions: Sequence[str] | None,
    surrogate_key: str | None,
    blocking: bool,
) -> dict[str, Json]:
    """Return the signal's data.

    Args:
        kind: the signal's type.
        tables: regular expressions of the tables.
        conditions: each ``REGEX=SQL``, cut at the first equals sign.
        surrogate_key: the column to cut the tables by, instead of their key.
        blocking: whether streaming waits for the snapshot.

    Raises:
        ConfigError: an option doesn't belong to the type, tables are missing, or a condition is malformed.
    """
    data: dict[str, Json] = {}
    if kind == ExecuteSnapshot.TYPE and not tables:
        raise ConfigError(
            f"A signal of the type {kind} needs the tables to read.",
            r"Give --table 'public\.orders', a regular expression.",
        )
    if tables:
        _require(kind, "--table", ExecuteSnapshot.TYPE, StopSnapshot.TYPE)
        data["data-collections"] = list(tables)
    if conditions:
        _require(kind, "--condition", ExecuteSnapshot.TYPE)
        data["additional-conditions"] = [_condition(text) for text in conditions]
    if surrogate_key:
        _require(kind, "--surrogate-key", ExecuteSnapshot.TYPE)
        data["surrogate-key"] = surrogate_key
    if blocking:
        _require(kind, "--blocking", ExecuteSnapshot.TYPE)
        data["type"] = BLOCKING
    return data


def _require(kind: str, option: str, *kinds: str) -> None:
    if kind not in kinds:
        raise ConfigError(f"Option {option} is for signals of the type {' or '.join(kinds)}, not '{kind}'.")


def _condition(text: str) -> dict[str, str]:
    tables, equals, predicate = text.partition("=")
    if not equals:
        raise ConfigError(f"Option --condition has the value '{text}'; it must be REGEX=SQL.")
    return {"data-collection": tables, "filter": predicate}
