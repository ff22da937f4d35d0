"""The statements with which a snapshot reads some of the tables, instead of reading all of their rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from floodmark.config.common import CommonOptions
from floodmark.errors import ConfigError
from floodmark.extensions.snapshotter import SnapshotQuery
from floodmark.logger import get_logger

log = get_logger(__name__)

OVERRIDES = "snapshot.select.statement.overrides"
CHOSEN = "snapshot.include.collection.list"
WHOLE = 1
"""The size of a table that is read with a statement, in units of a chunk: a statement can't be divided."""


class SelectStatements:
    """Returns the statement for each table that has one.

    Args:
        options: the source's options.
        query: the query that ``snapshot.query.mode=custom`` names; None if there is none.

    Attributes:
        checked: whether the tables' names in the options have been verified; from then on, the name of a dropped table
            is no error.
    """

    def __init__(self, options: CommonOptions, query: SnapshotQuery | None) -> None:
        self._options = options
        self._query = query
        self._overrides = options.select_statements()
        # What the query returned, kept so that it stays the same as long as the snapshot runs.
        self._asked: dict[tuple[str, tuple[str, ...]], str | None] = {}
        self.checked = False

    def __bool__(self) -> bool:
        return bool(self._overrides) or self._query is not None

    def overrides(self, name: str) -> bool:
        """Return whether the options have a statement for a table.

        Args:
            name: the table's, with that of its schema or database.
        """
        return name in self._overrides

    def of(self, name: str, sql_name: str, columns: Callable[[], Sequence[str]]) -> tuple[bool, str | None]:
        """Return whether a table is read with a statement, and the statement; None leaves the table out.

        Args:
            name: the table's, with that of its schema or database.
            sql_name: the same, quoted for SQL.
            columns: returns the names of the columns that are read, quoted for SQL.
        """
        if name in self._overrides:
            return True, self._overrides[name]
        if self._query is None:
            return False, None
        asked = (sql_name, tuple(columns()))
        if asked not in self._asked:
            self._asked[asked] = self._query.snapshot_query(*asked)
        return True, self._asked[asked]

    def check(self, names: Collection[str]) -> None:
        """Verify that every statement of the options is for a table that is read, and every pattern for one.

        With a wrong name, its table would be read in full, or not at all.

        Args:
            names: of the tables that the snapshot reads.

        Raises:
            ConfigError: a statement isn't, and ``snapshot.include.collection.list`` doesn't leave its table out,
                either; or a pattern of that is for a table of another database.
        """
        if self.checked:
            return
        self._check_patterns(names)
        for name in self._overrides:
            left_out = self._options.snapshot_include_collection_list and not self._options.names_for_snapshot(name)
            if name not in names and not left_out:
                raise ConfigError(
                    f"Option '{OVERRIDES}' names the table '{name}', which the snapshot does not read.",
                    f"It reads {', '.join(sorted(names)) or 'no table'}. Correct the name (case counts), or remove it.",
                )
        self.checked = True

    def _check_patterns(self, names: Collection[str]) -> None:
        for pattern in self._options.snapshot_include_collection_list:
            if any(self._options.names_for_snapshot(name, (pattern,)) for name in names):
                continue
            mistake = self._options.table_names.mistake(pattern.pattern)
            if mistake:
                raise ConfigError(
                    f"Option '{CHOSEN}' has '{pattern.pattern}', which matches no table: {mistake}.",
                    "Correct the database, or leave it out: schema.table is enough.",
                )
            log.warning("pattern_matches_no_table", option=CHOSEN, pattern=pattern.pattern)
