"""Shows differences between events, field by field."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from floodmark.comparison.differences import Difference, Kind, Side
from floodmark.comparison.positions import Positions
from floodmark.json_data import Json

Texts = tuple[str | None, str | None]
"""Key and value of a record."""
_NOT_COMPARED = {"version", "name"}
_PROCESSED = {"ts_ms", "ts_us", "ts_ns"}


@dataclass(frozen=True)
class Field:
    """A field in which two events differ.

    Attributes:
        path: its name, with those of the structures that it is in, such as ``after.id``.
        theirs: its JSON text in Debezium's event; None: it isn't there.
        ours: the same of Floodmark's.
    """

    path: str
    theirs: str | None
    ours: str | None


@dataclass(frozen=True)
class Shown:
    """A difference, as it is shown.

    Attributes:
        kind: the difference's.
        key: the record's key, as JSON; None without one.
        op: the operation.
        position: where in the log the change was.
        fields: in what the events differ; with both sides only.
        form: whether the events' values are the same, and only written differently, or a tombstone follows one only.
    """

    kind: Kind
    key: str | None
    op: str | None
    position: str
    fields: list[Field] = field(default_factory=list)
    form: bool = False


def shown(difference: Difference, texts: Mapping[Side, Texts], positions: Positions) -> Shown:
    """Return a difference as it is shown.

    Args:
        difference: the difference.
        texts: its records' keys and values.
        positions: what the events say of the log.
    """
    events = {side: _event(value) for side, (_, value) in texts.items()}
    first = next((event for event in events.values() if event), {})
    source = first.get("source")
    key = next((_key(one) for one, _ in texts.values() if one is not None), None)
    fields = []
    if difference.kind == "different" and len(events) == 2:
        fields = list(_fields("", events["theirs"], events["ours"]))
    return Shown(
        difference.kind,
        key,
        str(first["op"]) if "op" in first else None,
        positions.shown(source if isinstance(source, dict) else {}),
        fields,
        difference.kind == "different" and not fields,
    )


def _event(value: str | None) -> dict[str, Json]:
    found = json.loads(value) if value is not None else None
    if not isinstance(found, dict):
        return {}
    if found.keys() != {"schema", "payload"}:
        return found
    event = found["payload"] if isinstance(found["payload"], dict) else {}
    source = event.get("source")
    prefix = source["name"] if isinstance(source, dict) and "name" in source else ""
    # Names of schemas begin with the topics' prefix, which is each side's own.
    return {"schema": json.loads(json.dumps(found["schema"]).replace(f'"{prefix}.', '".')), **event}


def _key(text: str) -> str:
    found = json.loads(text)
    return json.dumps(found["payload"], ensure_ascii=False) if isinstance(found, dict) and "payload" in found else text


def _fields(path: str, theirs: Json, ours: Json) -> Iterator[Field]:
    """Yield the fields in which two values differ."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name in [*theirs, *(name for name in ours if name not in theirs)]:
            if (path == "source" and name in _NOT_COMPARED) or (not path and name in _PROCESSED):
                continue
            if path == "source" and name == "sequence" and _last(theirs.get(name)) == _last(ours.get(name)):
                continue
            inner = f"{path}.{name}" if path else name
            if name not in theirs or name not in ours:
                yield Field(inner, _text(theirs, name), _text(ours, name))
            else:
                yield from _fields(inner, theirs[name], ours[name])
    elif theirs != ours or type(theirs) is not type(ours):
        yield Field(path, json.dumps(theirs, ensure_ascii=False), json.dumps(ours, ensure_ascii=False))


def _last(sequence: Json) -> str:
    return str(sequence).rpartition(",")[2]


def _text(event: Mapping[str, Json], name: str) -> str | None:
    return json.dumps(event[name], ensure_ascii=False) if name in event else None
