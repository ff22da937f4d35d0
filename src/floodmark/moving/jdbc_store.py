"""Debezium's offsets in a table of a relational database: its ``JdbcOffsetBackingStore``.

Source: Debezium's ``JdbcOffsetBackingStore`` and its configuration: a row for each key, and at a restart the rows in
the order of ``record_insert_ts`` and ``record_insert_seq``.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from contextlib import closing

from floodmark.errors import ConfigError, OffsetError, TargetError
from floodmark.sinks.relational.connect import dialect_of
from floodmark.sinks.relational.options import JdbcOptions

SCHEME = "jdbc:"
TABLE = "debezium_offset_storage"
TABLE_SETTING = "offset.storage.jdbc.table.name"
SETTINGS = ("connection.username", "connection.password", TABLE_SETTING)
_NAME = re.compile(r"\w+(\.\w+)?")


class JdbcOffsets:
    """An ``OffsetStore`` in a table.

    Args:
        url: ``jdbc:postgresql://<host>/<database>``, or ``jdbc:mysql://…`` or ``jdbc:mariadb://…``.
        settings: those in ``SETTINGS``.

    Raises:
        ConfigError: the URL or a setting is wrong, or the driver is not installed.
    """

    def __init__(self, url: str, settings: Mapping[str, str]) -> None:
        unknown = [name for name in settings if name not in SETTINGS]
        table = settings.get(TABLE_SETTING, TABLE)
        if unknown or not _NAME.fullmatch(table):
            what = f"The setting '{unknown[0]}' is not known" if unknown else f"'{table}' is not a table's name"
            raise ConfigError(f"{what} for offsets in a database.", f"There are: {', '.join(SETTINGS)}.")
        login = {name: value for name, value in settings.items() if name != TABLE_SETTING}
        self._dialect = dialect_of(JdbcOptions.parse({"connection.url": url, **login}))
        self._table = table
        self.place = f"the table {table}"

    def read(self) -> Mapping[bytes, bytes | None]:
        """Return the last value of each key."""
        statement = f"SELECT offset_key, offset_val FROM {self._table} ORDER BY record_insert_ts, record_insert_seq"
        try:
            with closing(self._dialect.connect()) as session:
                rows = session.query(statement, (), "reading Debezium's offsets")
        except TargetError as exc:
            raise OffsetError(f"The offsets in {self.place} cannot be read. {exc.what}", exc.cure) from None
        return {str(key).encode(): None if value is None else str(value).encode() for key, value in rows}

    def write(self, key: bytes, value: bytes) -> str:
        """Replace the row of a key, in one transaction; the others stay."""
        row = (str(uuid.uuid4()), key.decode(), value.decode())
        doing = "writing Debezium's offset"
        try:
            with closing(self._dialect.connect()) as session:
                session.begin()
                found = session.query(f"SELECT id, offset_key, record_insert_seq FROM {self._table}", (), doing)
                # Compared here, since a database may take keys for equal that differ in their case.
                for number in (one for one, known, _ in found if known == row[1]):
                    session.execute(f"DELETE FROM {self._table} WHERE id = %s", (number,), doing)
                session.execute(
                    f"INSERT INTO {self._table} (id, offset_key, offset_val, record_insert_ts, record_insert_seq) "
                    "VALUES (%s, %s, %s, CURRENT_TIMESTAMP, %s)",
                    (*row, max((int(last) for _, _, last in found), default=0) + 1),
                    doing,
                )
                session.commit()
        except TargetError as exc:
            raise OffsetError(f"The offset in {self.place} cannot be written. {exc.what}", exc.cure) from None
        return ""
