"""Tables: their structures, and their rows as they were at each system change number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.support.oracle.errors import OracleError
from tests.support.oracle.model.types import OracleType

Row = dict[str, Any]
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_ORDERED = str.maketrans(_DIGITS, "".join(sorted(_DIGITS)))
_UNORDERED = str.maketrans("".join(sorted(_DIGITS)), _DIGITS)
ROWS_PER_BLOCK = 100
BLOCK_BYTES = 8192


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: exactly as the dictionary has it.
        type: its type.
        nullable: whether it may be null.
        default: as DDL has it; empty: none.
    """

    name: str
    type: OracleType
    nullable: bool = True
    default: str = ""

    @property
    def ddl(self) -> str:
        """The column as ``DBMS_METADATA`` writes it."""
        default = f" DEFAULT {self.default}" if self.default else ""
        return f'"{self.name}" {self.type.text}{default}{"" if self.nullable else " NOT NULL ENABLE"}'


def column(name: str, type_: str, nullable: bool = True, default: str = "") -> Column:
    """Return a column by its type's text."""
    return Column(name, OracleType.parse(type_), nullable, default)


@dataclass(frozen=True)
class Structure:
    """A table as it is from one change of its structure to the next.

    Attributes:
        owner: its schema.
        name: its name.
        columns: in their order.
        key: names of the primary key's columns.
        version: how often it was changed, from 1.
        container: the pluggable database that it is in.
        supplemental: whether all columns are logged (``ALL COLUMN LOGGING``).
    """

    owner: str
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    version: int = 1
    container: str = ""
    supplemental: bool = True

    @property
    def ddl(self) -> str:
        """The statement as ``DBMS_METADATA.GET_DDL`` returns it."""
        parts = [one.ddl for one in self.columns]
        if self.key:
            names = ", ".join(f'"{name}"' for name in self.key)
            parts.append(f"PRIMARY KEY ({names})")
        return f'CREATE TABLE "{self.owner}"."{self.name}" ({", ".join(parts)});'

    def column(self, name: str) -> Column:
        """Return a column by its name."""
        for one in self.columns:
            if one.name == name:
                return one
        raise OracleError(904, text=f'"{name}": invalid identifier')


@dataclass
class Table:
    """A table with its rows.

    Attributes:
        object_id: identifies it for ever.
        data_object_id: identifies where its rows are; TRUNCATE changes it.
        structure: as it is now.
        past: earlier structures by version.
        changed_scn: when the structure was changed last.
        dropped: whether it is gone.
        temporary: whether its rows are its session's own (a global temporary table).
        created_scn: when it was created.
        unknown_row_id: what LogMiner shows as the ROWID of a row of which a value comes apart; None: nothing.
    """

    object_id: int
    data_object_id: int
    structure: Structure
    changed_scn: int
    past: dict[int, Structure] = field(default_factory=dict)
    dropped: bool = False
    temporary: bool = False
    created_scn: int = 0
    unknown_row_id: str | None = "A" * 18
    _versions: dict[str, list[tuple[int, Row | None]]] = field(default_factory=dict)
    _places: int = 0

    @property
    def owner(self) -> str:
        return self.structure.owner

    @property
    def name(self) -> str:
        return self.structure.name

    @property
    def blocks(self) -> int:
        """How many blocks its rows take."""
        newest = [versions[-1][1] for versions in self._versions.values()]
        texts = sum(len(value) for row in newest if row for value in row.values() if isinstance(value, str))
        return max(-(-self._places // ROWS_PER_BLOCK), texts // BLOCK_BYTES)

    def structure_at(self, version: int) -> Structure:
        """Return the structure of a version."""
        return self.structure if version == self.structure.version else self.past[version]

    def change(self, scn: int, **changes: Any) -> None:
        """Change the structure."""
        self.past[self.structure.version] = self.structure
        self.structure = replace(self.structure, version=self.structure.version + 1, **changes)
        self.changed_scn = scn

    def new_row_id(self) -> str:
        """Return the ROWID of a new row."""
        block, number = divmod(self._places, ROWS_PER_BLOCK)
        self._places += 1
        return row_id(self.data_object_id, block + 128, number)

    def write(self, scn: int, row_id: str, row: Row | None) -> None:
        """Store what a row is from a change on; None: it is gone."""
        self._versions.setdefault(row_id, []).append((scn, row))

    def rewrite(self, rows: Mapping[str, Row], scn: int) -> None:
        """Give rows other values, as a change of the structure does."""
        for place, row in rows.items():
            self.write(scn, place, row)

    def rows_at(self, scn: int) -> Iterator[tuple[str, Row]]:
        """Yield the rows that were committed at a number, with their ROWIDs, in the order of their places."""
        for place in self._versions:
            row = self.row_at(place, scn)
            if row is not None:
                yield place, row

    def row_at(self, row_id: str, scn: int) -> Row | None:
        """Return a row as it was committed at a number; None: it wasn't there."""
        found: Row | None = None
        for since, row in self._versions.get(row_id, ()):
            if since > scn:
                break
            found = row
        return found


def row_id(data_object_id: int, block: int, number: int, file: int = 6) -> str:
    """Return a ROWID: object, file, block and row, six bits a character."""
    return _sixes(data_object_id, 6) + _sixes(file, 3) + _sixes(block, 6) + _sixes(number, 3)


def ordered(row_id: str) -> str:
    """Return a text that sorts as a ROWID does."""
    return row_id.translate(_ORDERED)


def unordered(text: str) -> str:
    """Return the ROWID of a text that ``ordered`` has returned."""
    return text.translate(_UNORDERED)


def _sixes(number: int, width: int) -> str:
    return "".join(_DIGITS[number >> 6 * place & 63] for place in reversed(range(width)))
