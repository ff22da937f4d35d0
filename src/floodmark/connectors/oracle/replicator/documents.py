"""Reads the documents that the server streams, many at once, as rows of changes.

They are JSON, or protocol buffers that say the same. Each has a head, and a payload with one entry or several: the
beginning or end of a transaction, changes of rows, statements about tables, or a checkpoint, which says how far the
server has read the log. The changes become rows with the columns of LogMiner's view, so that all that follows takes
both; their values stay as they were sent until tasks decode them.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
from numpy.typing import NDArray

from floodmark.codecs.arrays import as_mask
from floodmark.connectors.oracle.mining.operations import Operation
from floodmark.connectors.oracle.mining.view import ROWS
from floodmark.connectors.oracle.replicator.messages import Messages, is_message
from floodmark.connectors.oracle.replicator.protocol import NO_NUMBER
from floodmark.errors import DecodeError, SourceStateError

Numbers = NDArray[np.int64]

_ENTRY = pa.struct(
    [
        ("op", pa.string()),
        ("schema", pa.struct([("owner", pa.string()), ("table", pa.string())])),
        ("rid", pa.string()),
        ("num", pa.int64()),
        ("sql", pa.string()),
    ]
)
_HEAD = pa.schema(
    [
        *((name, pa.int64()) for name in ("scn", "c_scn", "c_idx", "tm", "rth")),
        ("e_scn", pa.uint64()),
        *((name, pa.string()) for name in ("xid", "db", "usr")),
        ("payload", pa.list_(_ENTRY)),
    ]
)
_OPERATIONS = {"c": Operation.INSERT, "u": Operation.UPDATE, "d": Operation.DELETE, "ddl": Operation.DDL}
_PAYLOAD, _END = b'"payload":[', b"]}"
_BEGIN, _NEXT = re.compile(r'"payload"\s*:\s*\[\s*'), re.compile(r"\s*,\s*|\s*")
_NO_JSON, _STATEMENT = re.compile(rb"(?<=:)-?(?:inf|nan)(?=[,}])"), b'"op":"ddl"'
_TICKS = (4_000_000_000, 4_000_000_000_000, 4_000_000_000_000_000)
"""Times below these numbers are in seconds, milliseconds and microseconds; others are in nanoseconds."""
_XID = re.compile(r"(?:0x)?([0-9A-Fa-f]{1,4})\.([0-9A-Fa-f]{1,3})\.([0-9A-Fa-f]{1,8})")
_PLAIN_XID = re.compile(r"[0-9A-Fa-f]{16}")
NEEDED = (
    "The server's format needs type json or debezium, column 2, db 3, message 2 or 3, rid 1, scn-type with the bit 4, "
    "and 8 if messages have whole transactions or transactions are large, timestamp-type with the bit 4, xid 3, and "
    "flags of the source the bits 32 and 4096; docs/oracle.md has whole configurations, also for release 1.9.0."
)


class Kind(IntEnum):
    """What a document is."""

    CHANGES = 0
    BEGIN = 1
    COMMIT = 2
    CHECKPOINT = 3


_KINDS = {**dict.fromkeys(_OPERATIONS, Kind.CHANGES), "begin": Kind.BEGIN, "commit": Kind.COMMIT}
_KINDS["chkpt"] = Kind.CHECKPOINT


@dataclass(frozen=True)
class Documents:
    """Documents in the order of the stream.

    Attributes:
        kind: shape (documents,).
        scn: ``c_scn``, shape (documents,).
        index: ``c_idx``, shape (documents,).
        commit_scn: the commit's number, shape (documents,); 0: the document doesn't say it.
        seconds: since the epoch, shape (documents,).
        xid: the transactions' identifiers; None for checkpoints.
        rows: the changes and statements, with the columns of the view; ``SCN`` is ``c_scn``, ``SSN`` ``c_idx``,
            ``SEQUENCE#`` the change's number in its transaction from 1, or 0 if it isn't known, and ``SQL_REDO`` its
            entry, or a statement's text.
        place: the document of each row, shape (rows,), ascending.
        database: the name that the documents give; None: they give none.
    """

    kind: NDArray[np.uint8]
    scn: Numbers
    index: Numbers
    commit_scn: Numbers
    seconds: Numbers
    xid: Sequence[str | None]
    rows: pa.Table
    place: Numbers
    database: str | None

    def __len__(self) -> int:
        return len(self.kind)


def read_documents(messages: Sequence[bytes], captures: Callable[[str, str], bool]) -> Documents:
    """Return what documents say.

    Args:
        messages: the documents, at least one.
        captures: whether a table is captured, by its schema and name; statements are always returned.

    Raises:
        SourceStateError: they aren't what such a server sends, or lack what is needed.
    """
    sent = _messages(messages) if is_message(messages[0]) else None
    heads = _heads(messages) if sent is None else sent.heads
    counts = pc.list_value_length(heads["payload"]).fill_null(0).to_numpy()
    if not counts.all():
        raise _damaged("a document has no payload")
    entries = heads["payload"].flatten()
    first = np.cumsum(counts) - counts
    operations = pc.struct_field(entries, "op")
    _refuse_unknown(operations)
    kind = _mapped(operations.take(pa.array(first)), {name: int(one) for name, one in _KINDS.items()}).astype(np.uint8)
    _refuse_lacking(heads, kind)
    place = np.repeat(np.arange(len(counts)), counts)
    seconds = _seconds(heads["tm"].fill_null(0).to_numpy())
    xid = _transactions(heads["xid"])
    chosen = _chosen(entries, operations, captures)
    is_statement = pc.equal(operations.take(pa.array(chosen)), "ddl")
    if sent is None:
        texts = pa.array(_entries(messages, place, chosen, as_mask(is_statement)), pa.string())
    else:
        texts = pc.if_else(is_statement, None, sent.texts(chosen))
    rows = _rows(heads, entries, texts, chosen, place, seconds, xid)
    names = pc.unique(heads["db"]).drop_null().to_pylist()
    return Documents(
        kind,
        heads["c_scn"].to_numpy(),
        heads["c_idx"].to_numpy(),
        _commits(heads, kind),
        seconds,
        xid.to_pylist(),
        rows,
        place[chosen],
        " and ".join(names) if names else None,
    )


def _messages(messages: Sequence[bytes]) -> Messages:
    try:
        return Messages(messages, _HEAD)
    except DecodeError as exc:
        raise _damaged(f"a message can't be read ({exc})") from None


def _heads(messages: Sequence[bytes]) -> pa.RecordBatch:
    try:
        return _read_heads(messages)
    except SourceStateError:
        # Binary numbers that are infinite, or no numbers, are no JSON. Only their table is in error then.
        finite = [one if _STATEMENT in one else _NO_JSON.sub(b"null", one) for one in messages]
        if finite == list(messages):
            raise
        return _read_heads(finite)


def _read_heads(messages: Sequence[bytes]) -> pa.RecordBatch:
    data = b"\n".join(messages)
    try:
        pa.array([data]).cast(pa.string())  # it must be UTF-8
        table = pa.json.read_json(
            io.BytesIO(data),
            read_options=pa.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pa.json.ParseOptions(explicit_schema=_HEAD, unexpected_field_behavior="ignore"),
        )
    except (pa.ArrowInvalid, OSError) as exc:
        raise _damaged(f"a document can't be read ({exc})") from None
    if len(table) != len(messages):
        raise _damaged("a message isn't one document")
    batch: pa.RecordBatch = table.combine_chunks().to_batches()[0]
    return batch


def _refuse_unknown(operations: pa.StringArray) -> None:
    for name in pc.unique(operations).to_pylist():
        if name not in _KINDS:
            raise _damaged(f"an entry has the operation {name!r}, which isn't known")


def _refuse_lacking(heads: pa.RecordBatch, kind: NDArray[np.uint8]) -> None:
    for name in ("c_scn", "c_idx", "tm"):
        if heads[name].null_count:
            raise _damaged(f"a document has no '{name}'")
    if pc.min(heads["c_scn"]).as_py() < 0 or pc.min(heads["c_idx"]).as_py() < 0:
        raise _damaged("a document has a negative number")
    known = pc.is_valid(heads["xid"]).to_numpy(zero_copy_only=False)
    if not known[kind != Kind.CHECKPOINT].all():
        raise _damaged("a document has no 'xid' that is text (format.xid must not be 2)")


def _commits(heads: pa.RecordBatch, kind: NDArray[np.uint8]) -> Numbers:
    """Return the commits' numbers: only where a transaction ends is a document's own number that of its commit."""
    # Checkpoints before any transaction have the largest number of 64 bits.
    shown = heads["e_scn"].fill_null(0).to_numpy()
    known: Numbers = np.where(shown == NO_NUMBER, 0, shown).astype(np.int64)
    found: Numbers = np.where((known == 0) & (kind == Kind.COMMIT), heads["scn"].fill_null(0).to_numpy(), known)
    return found


def _chosen(entries: pa.StructArray, operations: pa.StringArray, captures: Callable[[str, str], bool]) -> Numbers:
    """Return which entries are statements, or changes of captured tables."""
    schema = pc.struct_field(entries, "schema")
    owner, table = pc.struct_field(schema, "owner"), pc.struct_field(schema, "table")
    coded = pc.binary_join_element_wise(owner, table, "\0").dictionary_encode()
    wanted = [captures(*name.split("\0", 1)) for name in coded.dictionary.to_pylist()]
    captured = np.array([*wanted, False], np.bool_)[coded.indices.fill_null(len(wanted)).to_numpy()]
    codes = _mapped(operations, {name: int(one) for name, one in _OPERATIONS.items()})
    found: Numbers = np.flatnonzero((codes == Operation.DDL) | (captured & (codes > 0)))
    return found


def _rows(
    heads: pa.RecordBatch,
    entries: pa.StructArray,
    texts: pa.StringArray,
    chosen: Numbers,
    place: Numbers,
    seconds: Numbers,
    xid: pa.StringArray,
) -> pa.Table:
    at, of = pa.array(chosen), pa.array(place[chosen])
    some = entries.take(at)
    schema = pc.struct_field(some, "schema")
    operations = _mapped(pc.struct_field(some, "op"), {name: int(one) for name, one in _OPERATIONS.items()})
    sql = pc.struct_field(some, "sql")
    known = {
        "SCN": heads["c_scn"].take(of),
        "OPERATION_CODE": pa.array(operations),
        "TIMESTAMP": pa.array(seconds[place[chosen]]).cast(pa.timestamp("s")),
        "XID": xid.take(of),
        "SEG_OWNER": pc.struct_field(schema, "owner"),
        "TABLE_NAME": pc.struct_field(schema, "table"),
        "ROW_ID": pc.struct_field(some, "rid").fill_null(""),
        "SQL_REDO": pc.coalesce(texts, sql, pa.scalar("")),
        "SSN": heads["c_idx"].take(of),
        "THREAD#": heads["rth"].take(of).fill_null(0),
        "SEQUENCE#": pc.add(pc.struct_field(some, "num"), 1).fill_null(0),
        "USERNAME": heads["usr"].take(of),
    }
    count = len(chosen)
    columns = [known.get(field.name, pa.nulls(count, field.type)) for field in ROWS]
    return pa.table([column.cast(field.type) for column, field in zip(columns, ROWS, strict=True)], schema=ROWS)


def _entries(
    messages: Sequence[bytes], place: Numbers, chosen: Numbers, statements: NDArray[np.bool_]
) -> list[bytes | None]:
    """Return the text of entries; None for statements."""
    counts = np.bincount(place, minlength=len(messages)).tolist()
    firsts = np.cumsum(counts) - counts
    found: list[bytes | None] = []
    several: tuple[int, list[bytes]] = (-1, [])
    rows = zip(chosen.tolist(), place[chosen].tolist(), statements.tolist(), strict=True)
    for entry, document, is_statement in rows:
        message = messages[document]
        if is_statement:
            found.append(None)
        elif counts[document] == 1 and message.endswith(_END) and (begin := message.find(_PAYLOAD)) >= 0:
            found.append(message[begin + len(_PAYLOAD) : -len(_END)])
        else:
            if several[0] != document:
                several = document, _divided(message)
                if len(several[1]) != counts[document]:
                    raise _damaged("a document has its payload twice")
            found.append(several[1][entry - int(firsts[document])])
    return found


def _divided(message: bytes) -> list[bytes]:
    """Return the texts of a document's entries."""
    text, decoder, found = message.decode(), json.JSONDecoder(), []
    place = _BEGIN.search(text)
    try:
        while place is not None and text[place.end()] != "]":
            _, end = decoder.raw_decode(text, place.end())
            found.append(text[place.end() : end].encode())
            place = _NEXT.match(text, end)
    except (ValueError, RecursionError) as exc:
        raise _damaged(f"a document can't be read ({exc})") from None
    return found


def _seconds(times: Numbers) -> Numbers:
    """Return times in seconds, whatever unit the server writes them in; its log knows no more than seconds."""
    units = np.searchsorted(np.array(_TICKS), np.abs(times), side="right")
    found: Numbers = times // np.array([1, 10**3, 10**6, 10**9])[units]
    return found


def _transactions(names: pa.StringArray) -> pa.StringArray:
    """Return identifiers of transactions as LogMiner shows them."""
    coded = names.dictionary_encode()
    known = pa.array([_transaction(name) for name in coded.dictionary.to_pylist()], pa.string())
    return known.take(coded.indices)


def _transaction(name: str) -> str:
    if _PLAIN_XID.fullmatch(name):
        return name.lower()
    found = _XID.fullmatch(name)
    if found is None or not name.startswith("0x"):
        raise _damaged(f"the identifier of a transaction, {name!r}, has a form that isn't known (set format.xid to 3)")
    segment, slot, sequence = (int(one, 16) for one in found.groups())
    return (segment.to_bytes(2, "little") + slot.to_bytes(2, "little") + sequence.to_bytes(4, "little")).hex()


def _mapped(texts: pa.StringArray, numbers: dict[str, int]) -> Numbers:
    """Return a number for each text; -1 for others."""
    coded = texts.dictionary_encode()
    known = np.array([*(numbers.get(name, -1) for name in coded.dictionary.to_pylist()), -1], np.int64)
    found: Numbers = known[coded.indices.fill_null(len(known) - 1).to_numpy()]
    return found


def _damaged(problem: str) -> SourceStateError:
    return SourceStateError(f"OpenLogReplicator has sent what can't be used: {problem}.", NEEDED)
