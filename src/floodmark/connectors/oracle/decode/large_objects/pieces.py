"""The rows that have pieces of large values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.connectors.oracle.decode.large_objects.content import Document, LargeObject, Value
from floodmark.connectors.oracle.decode.large_objects.pending import Pending
from floodmark.connectors.oracle.mining.operations import Operation
from floodmark.connectors.oracle.mining.row_ids import known_row_id
from floodmark.connectors.oracle.redo.large_values import large_objects, long_strings, xml_documents
from floodmark.errors import DecodeError

Numbers = NDArray[np.int64]
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
class Written:
    """What LOB_WRITE writes.

    Attributes:
        offset: where it begins.
        data: its content.
    """

    offset: int
    data: Value


@dataclass(frozen=True)
class Piece:
    """A row that has a piece of a large value.

    Attributes:
        operation: what it is.
        statement: ``SQL_REDO``.
        info: ``INFO``.
        row_id: ``ROW_ID``.
        written: what LOB_WRITE writes; None: that can't be read, or it is something else.
    """

    operation: int
    statement: str
    info: str | None
    row_id: str | None
    written: Written | None

    def put_into(self, content: LargeObject | Document) -> None:
        """Change a value as the piece says."""
        try:
            if isinstance(content, LargeObject):
                self._change(content)
            elif self.operation == Operation.XML_WRITE:
                content.add(xml_documents.piece(self.statement, self.info))
            else:
                content.add(long_strings.piece(self.statement))
        except DecodeError:
            content.fail()

    @property
    def stray(self) -> Stray:
        """What is known of its value, if no row before it names that."""
        is_binary = None if self.written is None else isinstance(self.written.data, bytes)
        return Stray(known_row_id(self.row_id), is_binary)

    def _change(self, content: LargeObject) -> None:
        statements = pa.array([self.statement], pa.string())
        if self.operation == Operation.LOB_TRIM:
            content.trim(int(large_objects.trims(statements)[0]))
        elif self.operation == Operation.LOB_ERASE:
            erased = large_objects.erasures(statements)
            content.erase(int(erased.offsets[0]), int(erased.lengths[0]))
        elif self.written is None:
            content.fail()
        else:
            content.write(self.written.offset, self.written.data)


def pieces_of(operations: Numbers, rows: pa.Table) -> list[Piece]:
    """Return the pieces that rows of the view have."""
    statements = rows["SQL_REDO"].combine_chunks().fill_null("")
    places = np.flatnonzero(operations == Operation.LOB_WRITE)
    written = dict(zip(places.tolist(), _writes(statements.take(pa.array(places))), strict=True))
    texts = (statements.to_pylist(), rows["INFO"].to_pylist(), rows["ROW_ID"].to_pylist())
    return [Piece(*one, written.get(place)) for place, one in enumerate(zip(operations.tolist(), *texts, strict=True))]


def _writes(statements: pa.StringArray) -> list[Written | None]:
    """Return what each statement of LOB_WRITE writes; None: that can't be read."""
    try:
        found = large_objects.writes(statements)
    except DecodeError:
        if len(statements) == 1:
            return [None]
        # Only those that can't be read are left out.
        return [one for number in range(len(statements)) for one in _writes(statements.slice(number, 1))]
    parts = zip(
        found.offsets.tolist(), found.lengths.tolist(), found.binary.tolist(), found.data.to_pylist(), strict=True
    )
    return [_written(offset, length, binary, data) for offset, length, binary, data in parts]


def _written(offset: int, length: int, is_binary: bool, data: str) -> Written | None:
    if not is_binary:
        return Written(offset, _beginning(data, length))
    try:
        return Written(offset, bytes.fromhex(data)[:length])
    except ValueError:
        return None


def _beginning(text: str, length: int) -> str:
    """Return so many characters, as Oracle counts them."""
    if len(text) * 2 <= length:
        return text
    return text.encode("utf-16-le")[: 2 * length].decode("utf-16-le", "surrogatepass")
