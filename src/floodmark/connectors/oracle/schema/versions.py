"""The structures of the captured tables along the log.

Each version is what holds from one statement about a table to the next. A version is a file below ``schema-history``
in ``state.dir``, named by its content, and an offset names the version of its position: so a query goes on with the
structures of then, whatever was altered meanwhile.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from floodmark.capture.places import Places
from floodmark.connectors.oracle.structures.stored import table_json, table_of
from floodmark.connectors.oracle.structures.table import Table
from floodmark.connectors.schema_history.files import HistoryFiles
from floodmark.errors import SchemaHistoryError
from floodmark.json_data import JsonObject

_CURE = (
    "Ways out: restore state.dir; or start once with snapshot.mode=recovery, which takes the structures as they are "
    "now, if no captured table was altered since the query stopped."
)


@dataclass(frozen=True)
class Version:
    """The captured tables as they are from one position to the next.

    Attributes:
        tables: by ``schema.table``.
        objects: the names of tables, by ``OBJECT_ID``.
        name: of its file.
    """

    tables: Mapping[str, Table]
    objects: Mapping[int, str]
    name: str = field(compare=False, default="")

    @classmethod
    def of(cls, tables: Mapping[str, Table], objects: Mapping[int, str]) -> Version:
        """Return a version with the name that its content gives it."""
        digest = hashlib.sha256(b"\n".join(_lines(tables, objects))).hexdigest()[:32]
        return cls(MappingProxyType(dict(tables)), MappingProxyType(dict(objects)), f"{digest}.tables")

    def lines(self) -> list[bytes]:
        """Return the content of its file."""
        return _lines(self.tables, self.objects)


def _lines(tables: Mapping[str, Table], objects: Mapping[int, str]) -> list[bytes]:
    described = [json.dumps(table_json(tables[name]), sort_keys=True).encode() for name in sorted(tables)]
    return [json.dumps({str(number): name for number, name in sorted(objects.items())}).encode(), *described]


class TableVersions:
    """Keeps the versions of all positions that may be needed; used by capture's thread and by the planner's.

    Args:
        files: where they are stored.
    """

    def __init__(self, files: HistoryFiles) -> None:
        self._files = files
        self._places: Places[Version] = Places()
        self._kept: list[str] = []

    def begin(self, position: str, version: Version) -> None:
        """Begin at a position; nothing before it is needed any more."""
        self._places.clear()
        self.add(position, version)

    def add(self, position: str, version: Version) -> None:
        """Record what holds from a position on. It is stored before any offset can name it.

        Raises:
            StateDirError: it can't be stored.
        """
        if version.name not in self._kept:
            self._files.write(version.name, version.lines())
            self._kept.append(version.name)
        self._places.add(position, version)

    def at(self, position: str) -> Version:
        """Return what holds at a position."""
        found = self._places.at(position)
        assert found is not None, "versions begin before the log does"
        return found

    def restore(self, position: str, name: str) -> None:
        """Begin at a position with the version that its offset names.

        Raises:
            SchemaHistoryError: its file is gone or damaged.
        """
        self.begin(position, self.read(name))

    def read(self, name: str) -> Version:
        """Return a version that was stored; see ``restore``."""
        try:
            lines = self._files.read(name)
        except (OSError, ValueError) as exc:
            raise SchemaHistoryError(
                f"The tables' structures ({self._files.place}/{name}) are lost: {exc}.", _CURE
            ) from None
        numbers, *stored = [JsonObject(json.loads(line), "A table's structure", _damaged) for line in lines]
        tables = [table_of(one) for one in stored]
        found = Version.of({_name(table): table for table in tables}, {int(one): numbers.text(one) for one in numbers})
        self._kept.append(found.name)
        return found

    def forget(self, position: str) -> None:
        """Remove what only earlier positions need."""
        self._places.forget(position)
        needed = {version.name for version in self._places.all()}
        gone = [name for name in self._kept if name not in needed]
        if gone:
            self._files.remove(gone)
            self._kept = [name for name in self._kept if name in needed]


def _name(table: Table) -> str:
    return f"{table.owner}.{table.name}"


def _damaged(problem: str) -> SchemaHistoryError:
    return SchemaHistoryError(f"The tables' structures in state.dir are damaged: {problem}.", _CURE)
