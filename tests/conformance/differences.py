"""The differences to Debezium that are intended; docs/differences.md gives the reasons."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.conformance.golden import Golden

OTHER_KEYS = {"golden.public.id_index"}
"""Topics of tables whose replica identity is an index that lacks the primary key: the index is our key."""

LEFT_OUT = {"golden.public.brief"}
"""Topics of unlogged tables."""

READ_TWICE: dict[str, dict[str, str | None]] = {
    "partitions_unfiltered": {"golden.public.p": None, "golden.public.p2": None},
    "partitions_unfiltered_root": {"golden.public.p1": None, "golden.public.p2": None, "golden.public.p2a": None},
    "inheriting": {"golden.public.parent": '{"id":2}'},
    "inheriting_parent": {"golden.public.parent": '{"id":2}'},
}
"""Rows that snapshots read a second time, under a name that their changes don't come under: topics, and the row's key
if it is one row only."""

NEGATIVE_SCALE = "numeric_5_m2"

INFINITE_DATES = {2147483647, -2147483648, "+5881580-07-11Z", "-5877641-06-23Z"}
RIGHT_DATES = {-141432, -735160, "1582-10-10Z", "-0043-03-15Z"}
"""1582-10-10 and 44-03-15 BC in the proleptic Gregorian calendar."""

TYPES_TOLD = {"propagate_columns", "truncate_scalars", "truncate_strings"}
TOLD_OTHERWISE = {"c_numeric", "c_serial", "c_smallserial", "c_bigserial"}
"""Columns whose type snapshots tell otherwise than streams."""

ODD_ELEMENTS: dict[str, list[Any]] = {
    "a_date": [2147483647, -735160, -141432, -719162],
    "a_time": [47655123456, 86400000000, 86399999999],
    "a_timetz": ["11:14:15.123456Z", "12:00:00.1Z"],
    "a_timestamp": [9223372036825200000, -63517780800000000, -12219724800000000, 253402300799999999],
    "a_timestamptz": ["infinity", "-infinity", "-0043-03-15T12:00:00.000000Z", "1582-10-10T00:00:00.000000Z"],
    "a_numeric": [None, {"scale": 0, "value": "AQ=="}],
    "a_numeric_10_2": [None, "ZA=="],
}
"""The elements of odd arrays (case ``arrays_odd``), which are those of scalars: Debezium's are cut or shifted."""

OUTBOX_NAMES = {
    "outbox_placed_schemas": "golden.public.outbox.t.Value",
    "outbox_odd_schemas": 'golden.public.odd.a"b.Value',
}
"""Names of schemas that follow from a topic; Debezium's all from that of the first record."""

BIT_ARRAYS: dict[str, list[Any]] = {"a_bit_1": [True, False], "a_bit_5": ["Fg==", ""]}


def read_twice(case: str, golden: Golden) -> bool:
    """Return whether an event is a row that Debezium's snapshot reads under another table's name, too."""
    topics = READ_TWICE.get(case, {})
    if golden.topic not in topics or '"op":"r"' not in (golden.value or ""):
        return False
    return topics[golden.topic] in (None, golden.key)


def expected_difference(case: str, got: str, want: str) -> list[str]:
    """Compare two values; return what differs beyond the intended differences."""
    if got == want:
        return []
    mine, theirs = json.loads(got), json.loads(want)
    found = list(compare("", mine, theirs))
    if not found:
        return [f"{case}: same values, other text: {got} != {want}"]
    return [f"{case}: {path}: {a!r} != {b!r}" for path, a, b in found if not intended(case, path, a, b, mine, theirs)]


def compare(path: str, a: Any, b: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the paths at which two JSON values differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        if list(a) != list(b):
            yield f"{path}.<fields>", list(a), list(b)
        for name in a.keys() & b.keys():
            yield from compare(f"{path}.{name}", a[name], b[name])
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from compare(f"{path}[{i}]", x, y)
    elif type(a) is not type(b) or a != b:
        yield path, a, b


def counts_messages(case: str, path: str, want: Any) -> bool:
    """Messages are one data collection; Debezium names each by the hash of a Java object, so each is the first."""
    if not case.startswith(("messages_transactions", "route_")):
        return False
    return path.endswith(".transaction.data_collection_order") or "LogicalDecodingMessageId@" in json.dumps(want)


def orders_details(path: str, got: Any, want: Any) -> bool:
    """Java orders the details of notifications anew in each process."""
    return path.endswith(".additional_data.<fields>") and sorted(got) == sorted(want)


def intended(case: str, path: str, got: Any, want: Any, mine: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Return whether a difference is one that docs/differences.md lists."""
    payload = theirs.get("payload", theirs)
    field = path.rsplit(".", 1)[-1]
    if path == ".iodebeziumsnapshot":
        return bool(theirs["iodebeziumop"] == "r" and got == "true")
    if path == ".schema.name" and case in OUTBOX_NAMES:
        return bool(want == OUTBOX_NAMES[case])
    if not isinstance(payload, dict) or "op" not in payload:
        return counts_messages(case, path, want) or orders_details(path, got, want)
    if path.endswith(".source.snapshot"):
        return bool(payload["op"] == "r" and got == "true")
    if counts_messages(case, path, want):
        return True
    if case.startswith(("time_", "scalars")) and field == "c_date":
        return odd_date(got, want, payload)
    if field == "name" and case == "precision":
        return want is None and got == "a name"
    if NEGATIVE_SCALE in (field, _schema_field(mine, path)):
        return True
    if case == "altered_types" and path.endswith(".parameters.allowed"):
        return bool(want == "sad,happy")
    if payload["op"] == "r" and case in TYPES_TOLD and (_schema_field(mine, path) or field) in TOLD_OTHERWISE:
        return True
    if case == "generated":
        return bool(payload["op"] == "r") and path.endswith("fields>" if "payload" in path else "fields")
    if case.startswith("placeholder_binary_base64"):
        return field == "b" and want is None and isinstance(got, str)
    if case.startswith(("arrays", "extensions_toast")):
        return odd_array(case, path, field, got, want, mine)
    return False


def odd_date(got: Any, want: Any, payload: dict[str, Any]) -> bool:
    """Infinite dates are int32's ends; others are right in the proleptic calendar, which streams use."""
    return got in INFINITE_DATES or (payload["op"] == "r" and got in RIGHT_DATES)


def odd_array(case: str, path: str, field: str, got: Any, want: Any, mine: dict[str, Any]) -> bool:
    """Return whether an array holds its values where Debezium has none, or wrong ones."""
    name, index = plain(field), field[len(plain(field)) :].strip("[]")
    if case == "arrays_odd":
        elements = ODD_ELEMENTS.get(name, [])
        if index:
            return bool(got == elements[int(index)])
        return want is None and got in (elements, elements[:1], [*elements, None])
    if case == "arrays_bits":
        elements = BIT_ARRAYS.get(name, [])
        whole = want is None and got in (elements, elements[:1], [*elements, None], [])
        return whole or _schema_field(mine, path) in BIT_ARRAYS
    if case == "arrays_nested":
        return isinstance(got, list) and (want is None or str(want).startswith("[Ljava.lang."))
    # One with a null element, whose schema has no place for it, or one that the log lacks.
    null_element = isinstance(got, list) and got[-1:] == [None]
    return want is None and (null_element or ("toast" in case and isinstance(got, list)))


def _schema_field(event: dict[str, Any], path: str) -> str | None:
    """Return the name of the row field that a path inside the schema belongs to."""
    indices = re.findall(r"\.schema\.fields\[(\d+)\]\.fields\[(\d+)\]", path)
    if not indices:
        return None
    outer, inner = map(int, indices[0])
    return str(event["schema"]["fields"][outer]["fields"][inner]["field"])


def plain(path: str) -> str:
    """Return a path without indices."""
    return re.sub(r"\[\d+\]", "", path)
