"""The intended differences to Debezium's MySQL and MariaDB connectors; docs/differences.md gives the reasons."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from tests.conformance.cases.case import Case
from tests.conformance.differences import compare
from tests.conformance.golden import Golden, masked_key

NUMBER_CASES = ("numbers", "json")
"""Cases with doubles, of which Java before 19 writes some with other digits than needed."""
GARBLED = {"koi8u", "cp932", "keybcs2", "hp8", "geostd8", "armscii8"}
"""Columns whose character set Debezium reads as another one."""
OTHER_DOCUMENTS = {
    "[9223372036854775807,-9223372036854775808,18446744073709551615,1.8446744073709552e19]",
    "[1.5,-0.0,1.0,1e100,0.0000001,123456789.123,1e15,1e17,0.1]",
    '["2024-02-29","2024-02-29 13:14:15.500000"]',
    '["13:14:15.123456","-838:59:59.000000"]',
    '["base64:type15:AP8Q","base64:type15:BQ==","2024-02-29 13:14:15.000000"]',
    '"12:00:00.000000"',
}
"""JSON documents with doubles, times and bytes, as the server prints them and Debezium does not."""
SORTED = ("snapshot_tables", "snapshot_select")
"""Cases in which a snapshot has another order of tables, or of rows."""
_KEY_FRACTION = re.compile(r"\.?0+Z")
_FRACTION = re.compile(r"\.?0+(?=Z$)")


def expected_difference(case: Case, got: str, want: str) -> list[str]:
    """Compare two values; return what differs beyond the intended differences."""
    if got == want:
        return []
    mine, theirs = json.loads(got), json.loads(want)
    found = list(compare("", mine, theirs))
    if not found:
        same = case.name.startswith(NUMBER_CASES)
        return [] if same else [f"{case.name}: same values, other text: {got} != {want}"]
    payload = theirs.get("payload", theirs)
    return [
        f"{case.connector} {case.name}: {path}: {a!r} != {b!r}"
        for path, a, b in found
        if not intended(case, path, a, b, payload)
    ]


def intended(case: Case, path: str, got: Any, want: Any, payload: dict[str, Any]) -> bool:
    """Return whether a difference is one that docs/differences.md lists."""
    read = payload.get("op") == "r"
    field = field_of(path)
    if path.endswith((".source.snapshot", ".iodebeziumsnapshot")):
        return bool(got == "true")
    if path == ".ddl" and case.name == "ddl_partitioned":
        # Debezium's parser takes the end of the comment with the partitions for none of the statement.
        return bool(got == f"{want} */")
    if path.endswith(".source.row"):
        return bool(got == 0 and (payload.get("op") == "t" or "ddl" in payload))
    if "ddl" in payload and path.endswith(".comment"):
        # Debezium keeps comments in columns that lose them, and loses them in copies of tables.
        return True
    if path.endswith("harsetName"):
        # Debezium remembers the character set of a database that has been dropped.
        forgotten = case.connector == "mariadb" and want is None
        return forgotten or (case.name.startswith("ddl_databases") and (got, want) == ("utf8mb4", "latin1"))
    if case.name == "uuids" and read is False:
        return isinstance(want, str) and want.startswith("00")
    if case.name == "times_old_formats":
        return isinstance(got, int) and got < 0
    if path.endswith(".transaction"):
        # MariaDB's statements about tables begin transactions for Debezium.
        return case.connector == "mariadb" and payload.get("op") == "t" and got is None
    if field in GARBLED:
        return case.name in ("charsets", "rare_charsets")
    if isinstance(got, str) and isinstance(want, str):
        return other_text(case, path, got, want, read)
    if isinstance(got, float) and isinstance(want, float):
        return bool(np.float32(got) == np.float32(want)) or (read and float(f"{got:.6g}") == want)
    if field == "y" and (got, want) == (2000, 1900):
        return True
    if read and case.name == "times_zero" and got is None:
        # What has a zero in its year Debezium's driver takes for 2000.
        return field in ("d", "dt") and isinstance(want, int)
    return read and case.name.startswith("times_old") and isinstance(want, int)


def other_text(case: Case, path: str, got: str, want: str, read: bool) -> bool:
    """Return whether a text differs as it is to."""
    if path.endswith(".default"):
        return want.replace("''", "'") == got
    if path.endswith(".allowed") or case.name in ("enums", "texts_schemas"):
        return want.replace("\\,", ",").replace("\\\\", "\\") == got
    if read and _FRACTION.sub("", got) == want:
        return True
    if read and case.name.startswith("times_old"):
        return got.startswith("1582-10-10")
    if field_of(path) == "j" and case.name in ("json", "json_schemas"):
        return got in OTHER_DOCUMENTS or _document(got) == _document(want)
    return read and _document(got) is not None and _document(got) == _document(want)


def places(case: Case, events: list[Golden]) -> list[tuple[str, str | None]]:
    """Return topics and keys in an order that can be compared."""
    found = [(event.topic, masked_key(event.topic, event.key)) for event in events]
    if case.name.startswith("key_types"):
        # Debezium's snapshots leave out zeros at the end of a timestamp, and so have other keys than its streams.
        found = [(topic, key and _KEY_FRACTION.sub("Z", key)) for topic, key in found]
    if case.name in SORTED:
        found.sort(key=repr)
    return found


def in_order(events: list[Golden]) -> list[Golden]:
    """Return events with those of a snapshot by their tables: threads read several at a time."""
    read = [event for event in events if _is_read(event)]
    rest = iter(event for event in events if not _is_read(event))
    ordered = iter(sorted(read, key=lambda event: event.topic))
    return [next(ordered) if _is_read(event) else next(rest) for event in events]


def _is_read(event: Golden) -> bool:
    return event.value is not None and '"op":"r"' in event.value


def told(case: Case, theirs: list[Golden]) -> list[Golden]:
    """Return Debezium's events without the beginnings of MariaDB's transactions that have no end."""
    if case.connector != "mariadb":
        return theirs
    ended = {event.key for event in theirs if event.value and '"status":"END"' in event.value}
    return [event for event in theirs if not (event.value and '"status":"BEGIN"' in event.value) or event.key in ended]


def field_of(path: str) -> str:
    """Return the last name of a path."""
    return path.rsplit(".", 1)[-1]


def _document(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
