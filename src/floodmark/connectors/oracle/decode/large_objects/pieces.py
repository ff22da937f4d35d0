"""The rows that have pieces of large values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

import pyarrow as pa

from floodmark.codecs.binary import decode_hex
from floodmark.connectors.oracle.decode.large_objects.content import Document, LargeObject, Value
from floodmark.connectors.oracle.decode.large_objects.pending import Pending
from floodmark.connectors.oracle.mining.operations import Operation
from floodmark.connectors.oracle.mining.row_ids import known_row_id
from floodmark.connectors.oracle.redo import large_objects, long_strings, xml_documents
from floodmark.errors import DecodeError

C = TypeVar("C", LargeObject, Document)

OF_LARGE_OBJECTS = (Operation.LOB_WRITE, Operation.LOB_TRIM, Operation.LOB_ERASE)
PIECES = (*OF_LARGE_OBJECTS, Operation.XML_WRITE, Operation.WRITE_32K)


@dataclass(frozen=True)
class Target(Generic[C]):
    """The value that pieces belong to.

    Attributes:
        pending: the change of its row.
        column: its column's number.
        content: what it is so far.
    """

    pending: Pending
    column: int
    content: C


@dataclass(frozen=True)
class Stray:
    """A piece of a value that no row before it names.

    Attributes:
        row_id: of the row, if it is known.
        is_binary: whether the value is a BLOB's; None: that isn't known.
    """

    row_id: str | None
    is_binary: bool | None


@dataclass(frozen=True)
class Piece:
    """A row that has a piece of a large value.

    Attributes:
        operation: what it is.
        statement: ``SQL_REDO``.
        info: ``INFO``.
        row_id: ``ROW_ID``.
    """

    operation: int
    statement: str | None
    info: str | None
    row_id: str | None

    def put_into(self, content: LargeObject | Document) -> None:
        """Change a value as the piece says."""
        try:
            if isinstance(content, LargeObject):
                _CHANGES[self.operation](self._statements, content)
            elif self.operation == Operation.XML_WRITE:
                content.add(xml_documents.piece(self.statement, self.info))
            elif self.operation == Operation.WRITE_32K:
                content.add(long_strings.piece(self.statement or ""))
        except DecodeError:
            content.fail()

    @property
    def stray(self) -> Stray:
        """What is known of its value, if no row before it names that."""
        is_binary = None
        if self.operation == Operation.LOB_WRITE:
            with suppress(DecodeError):
                is_binary = bool(large_objects.writes(self._statements).binary[0])
        return Stray(known_row_id(self.row_id), is_binary)

    @property
    def _statements(self) -> pa.StringArray:
        return pa.array([self.statement or ""], pa.string())


def _write(statements: pa.StringArray, content: LargeObject) -> None:
    written = large_objects.writes(statements)
    data: Value
    if written.binary[0]:
        try:
            data = decode_hex(written.data)[0].as_py()
        except ValueError:
            raise large_objects.unknown_form("LOB_WRITE") from None
        data = data[: written.lengths[0]]
    else:
        data = _beginning(written.data[0].as_py(), int(written.lengths[0]))
    content.write(int(written.offsets[0]), data)


def _beginning(text: str, length: int) -> str:
    """Return so many characters, as Oracle counts them."""
    if len(text) * 2 <= length:
        return text
    return text.encode("utf-16-le")[: 2 * length].decode("utf-16-le", "surrogatepass")


def _trim(statements: pa.StringArray, content: LargeObject) -> None:
    content.trim(int(large_objects.trims(statements)[0]))


def _erase(statements: pa.StringArray, content: LargeObject) -> None:
    erased = large_objects.erasures(statements)
    content.erase(int(erased.offsets[0]), int(erased.lengths[0]))


_CHANGES: dict[int, Callable[[pa.StringArray, LargeObject], None]] = {
    Operation.LOB_WRITE: _write,
    Operation.LOB_TRIM: _trim,
    Operation.LOB_ERASE: _erase,
}


def pieces_of(operations: Sequence[int], rows: pa.Table) -> list[Piece]:
    """Return the pieces that rows of the view have."""
    texts = (rows[name].to_pylist() for name in ("SQL_REDO", "INFO", "ROW_ID"))
    return [Piece(*one) for one in zip(operations, *texts, strict=True)]
