"""Finds the steps of XA transactions (branches) in the binlog.

A branch's changes are logged when it is prepared, as a transaction of its own: a GTID event, on MySQL ``XA START`` as
a statement, the changes, ``XA END``, and an XA_PREPARE event. Its end comes later, from any session: a GTID event and
``XA COMMIT`` or ``XA ROLLBACK`` as a statement. With ``XA COMMIT … ONE PHASE`` MySQL sets a flag in the XA_PREPARE
event, and nothing follows; MariaDB writes an ordinary transaction. Branches that change nothing are not logged.

Source: MySQL, ``libs/mysql/binlog/event/control_events.h``, ``XA_prepare_event``; MariaDB's documentation,
"XA_PREPARE_LOG_EVENT". Statements have the form that both servers write, ``X'…',X'…',1``.
"""

from __future__ import annotations

import io
import re
import struct
from dataclasses import dataclass
from enum import Enum

import numpy as np

from floodmark.connectors.mysql.binlog.boundaries import type_set
from floodmark.connectors.mysql.binlog.compressed import payload_events
from floodmark.connectors.mysql.binlog.event_types import HEADER_BYTES, QUERY, TRANSACTION_PAYLOAD, TYPE, XA_PREPARE
from floodmark.connectors.mysql.binlog.inflation import Inflation
from floodmark.connectors.mysql.binlog.queries import Query, parse_query
from floodmark.connectors.mysql.binlog.records import Indices, Records
from floodmark.connectors.mysql.gtid import Gtids, MariadbGtids
from floodmark.errors import DecodeError

_XID = struct.Struct("<III")
_STEPS = type_set(XA_PREPARE, TRANSACTION_PAYLOAD)
_LITERAL = r"(?:X'([0-9A-F]*)'|0x([0-9A-F]*)|'([^']*)')"
_DECISION = re.compile(
    rf"\s*XA\s+(?P<kind>COMMIT|ROLLBACK)\s+{_LITERAL}(?:\s*,\s*{_LITERAL})?(?:\s*,\s*(?P<format>\d+))?\s*$",
    re.IGNORECASE,
)
_FIRST_BYTES = 256


class Step(Enum):
    """A step in the life of a branch."""

    PREPARED = "prepared"
    ONE_PHASE = "prepared and committed"
    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"


@dataclass(frozen=True)
class BranchStep:
    """A transaction in the log that prepares or ends a branch.

    Attributes:
        step: what it does to the branch.
        first: its first record.
        last: the record that ends it.
        key: the branch, as returned by ``branch_key``.
    """

    step: Step
    first: int
    last: int
    key: bytes


def branch_key(format_id: int, gtrid: bytes, bqual: bytes) -> bytes:
    """Return the identity of a branch: its XID as in an XA_PREPARE event."""
    return _XID.pack(format_id & 0xFFFFFFFF, len(gtrid), len(bqual)) + gtrid + bqual


def branch_name(key: bytes) -> str:
    """Return a branch as it is written in statements: ``X'6131',X'62',7``."""
    format_id, size, _ = _XID.unpack_from(key)
    data = key[_XID.size :]
    return f"X'{data[:size].hex()}',X'{data[size:].hex()}',{format_id}"


def parse_prepare(body: bytes) -> tuple[bool, bytes]:
    """Parse an XA_PREPARE event; return whether it commits the branch, and the branch.

    Args:
        body: of the event, without header and checksum.

    Raises:
        DecodeError: the event is malformed.
    """
    try:
        format_id, first, second = _XID.unpack_from(body, 1)
        data = body[1 + _XID.size :]
        if len(data) < first + second:
            raise DecodeError("An XA_PREPARE event in the binlog is cut off.")
        return body[0] != 0, branch_key(format_id, data[:first], data[first : first + second])
    except (struct.error, IndexError) as exc:
        raise DecodeError(f"An XA_PREPARE event in the binlog cannot be read: {exc}.") from None


def parse_decision(query: Query) -> tuple[Step, bytes]:
    """Parse an XA COMMIT or XA ROLLBACK; return the step, and the branch.

    Raises:
        DecodeError: the statement is not in the form that servers write.
    """
    found = _DECISION.match(query.sql)
    if found is None:
        raise DecodeError(f"The statement '{query.sql[:200]}' in the binlog names no XA transaction that can be read.")
    try:
        gtrid, bqual = (_literal(*found.groups()[first : first + 3]) for first in (1, 4))
    except ValueError as exc:
        raise DecodeError(f"The statement '{query.sql[:200]}' in the binlog cannot be read: {exc}.") from None
    step = Step.COMMITTED if found["kind"].upper() == "COMMIT" else Step.ROLLED_BACK
    return step, branch_key(int(found["format"] or 1), gtrid, bqual)


def _literal(hexadecimal: str | None, number: str | None, text: str | None) -> bytes:
    digits = hexadecimal or number
    return bytes.fromhex(digits) if digits else (text or "").encode()


def branch_steps(records: Records, gtids: Indices) -> list[BranchStep]:
    """Return the steps of branches in some records, in order.

    Small compressed branches that are committed in one phase are omitted: each is one record, and stays where it is.

    Args:
        records: whole transactions; only the start of the first one may be missing.
        gtids: records of GTID events.
    """
    if not records.decisions and not _STEPS[records.types].any():
        return []
    steps = [(record, *parse_decision(query)) for record, query in records.decisions]
    for record in np.flatnonzero(records.types == XA_PREPARE).tolist():
        one_phase, key = parse_prepare(records.event(record)[HEADER_BYTES:])
        steps.append((record, Step.ONE_PHASE if one_phase else Step.PREPARED, key))
    for record in np.flatnonzero(records.types == TRANSACTION_PAYLOAD).tolist():
        key_inside = _prepared_inside(records.event(record))
        if key_inside is not None:
            steps.append((record, Step.PREPARED, key_inside))
    result = []
    for last, step, key in sorted(steps, key=lambda one: one[0]):
        before = int(np.searchsorted(gtids, last, "right"))
        result.append(BranchStep(step, int(gtids[before - 1]) if before else 0, last, key))
    return result


def _prepared_inside(event: bytes) -> bytes | None:
    """Return the branch that a compressed transaction prepares; None if it doesn't."""
    first = Inflation(io.BytesIO(event), len(event)).read(_FIRST_BYTES)
    end = int(first.starts[1]) if len(first.starts) > 1 else len(first.data)
    if not starts_branch(first.data[:end].tobytes()):
        return None
    plain, starts = payload_events(event[HEADER_BYTES:])
    last = bytes(plain[int(starts[-1]) :]) if len(starts) else b""
    if last[TYPE : TYPE + 1] != bytes([XA_PREPARE]):
        return None
    one_phase, key = parse_prepare(last[HEADER_BYTES:])
    return None if one_phase else key


def starts_branch(event: bytes | None) -> bool:
    """Return whether an event is the statement XA START."""
    return event is not None and event[TYPE] == QUERY and parse_query(event).sql.startswith("XA START")


def holds(gtids: Gtids, gtid: str | None) -> bool:
    """Return whether a GTID set contains a transaction."""
    if gtid is None:
        return False
    if isinstance(gtids, MariadbGtids):
        domain, _, number = map(int, gtid.split("-"))
        # Within a domain, sequence numbers increase across servers.
        return number <= max((last for (one, _), last in gtids.last.items() if one == domain), default=0)
    source, *tag, text = gtid.split(":")
    return gtids.contains(source, int(text), tag[0] if tag else "")
