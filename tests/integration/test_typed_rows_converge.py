"""Typed rows of generated work, merged by key: the target is what the source holds, whatever the log leaves out."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from floodmark.errors import SchemaChangeError
from tests.conftest import Source
from tests.integration.test_typed_rows import DATABASE, mysql_rows_of, rows_of, shop  # noqa: F401
from tests.support.databases import Database, Mysql, Session
from tests.support.inprocess import InProcess
from tests.support.merging import Target, merge
from tests.support.mysql import MysqlServer

ALTERATIONS = (
    "ALTER TABLE t ADD extra {text}",
    "ALTER TABLE t {retype}",
    "ALTER TABLE t DROP note",
)
COLUMNS = (
    ("id", "part", "v", "note", "big"),
    ("id", "part", "v", "note", "big", "extra"),
    ("id", "part", "v", "note", "big", "extra"),
    ("id", "part", "v", "big", "extra"),
)
STEPS = 60


class Work:
    """Changes rows of a table, at random but always in the same way."""

    def __init__(self, session: Session, seed: int) -> None:
        self._session = session
        self._random = random.Random(seed)
        self._next = 1

    def run(self, columns: Sequence[str]) -> None:
        """Change some rows, in transactions of which some are rolled back."""
        for _ in range(STEPS):
            ids = [int(row[0]) for row in self._session.execute("SELECT id FROM t ORDER BY id")]
            self._change(ids, columns)
            end = self._random.random()
            if end < 0.1:
                self._session.rollback()
            elif end < 0.6:
                self._session.commit()
        self._session.commit()

    def truncate(self) -> None:
        """Empty the table."""
        self._session.execute("TRUNCATE TABLE t")
        self._session.commit()

    def _change(self, ids: list[int], columns: Sequence[str]) -> None:
        act = self._random.random()
        if len(ids) < 5 or act < 0.2:
            for _ in range(3):
                self._insert(columns)
            return
        chosen, other = self._random.sample(ids, 2)
        if act < 0.4:
            self._session.execute("UPDATE t SET v = v + 1 WHERE id = %s", (chosen,))
        elif act < 0.5:
            self._session.execute("UPDATE t SET big = %s WHERE id = %s", (self._text("big"), chosen))
        elif act < 0.6:
            name = self._random.choice([name for name in columns if name not in ("id", "part", "v", "big")])
            self._session.execute(f"UPDATE t SET {name} = %s WHERE id IN (%s, %s)", (self._text(name), chosen, other))
        elif act < 0.7:
            self._move(chosen, self._fresh())
        elif act < 0.8:
            # Keys change places, and one is changed before and after that.
            away = self._fresh()
            self._session.execute("UPDATE t SET v = -v WHERE id = %s", (chosen,))
            for old, new in ((chosen, away), (other, chosen), (away, other)):
                self._move(old, new)
            self._session.execute("UPDATE t SET v = v * 2 WHERE id = %s", (other,))
        elif act < 0.9:
            # The key is used again.
            self._session.execute("DELETE FROM t WHERE id = %s", (chosen,))
            if self._random.random() < 0.5:
                self._move(other, chosen)
        else:
            self._session.execute("UPDATE t SET v = v + 100, part = part + 1 WHERE id > %s", (chosen,))

    def _insert(self, columns: Sequence[str]) -> None:
        names = [name for name in columns if name in ("id", "part", "v") or self._random.random() < 0.7]
        values: list[Any] = [self._fresh(), 0, self._random.randrange(1000)]
        values += [self._text(name) for name in names[3:]]
        marks = ", ".join(["%s"] * len(names))
        self._session.execute(f"INSERT INTO t ({', '.join(names)}) VALUES ({marks})", values)

    def _move(self, old: int, new: int) -> None:
        self._session.execute("UPDATE t SET id = %s WHERE id = %s", (new, old))

    def _fresh(self) -> int:
        self._next += 1
        return self._next

    def _text(self, name: str) -> str | None:
        if self._random.random() < 0.1:
            return None
        letter = self._random.choice("abcdefgh")
        return letter * (3000 + self._random.randrange(100)) if name == "big" else letter


def deliver(query: InProcess, target: Target) -> None:
    """Merge all that there is, micro-batch by micro-batch."""
    query.reader.prepareForTriggerAvailableNow()
    while True:
        end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
        if end == query.offset:
            query.reader.commit(end)
            return
        merge(target, query.run(end))
        query.offset = end


def converge(query: InProcess, session: Session, seed: int, words: dict[str, str]) -> None:
    """Let a table be changed and altered, and compare it with what its rows were merged into."""
    work, target = Work(session, seed), Target()
    for number, columns in enumerate(COLUMNS):
        work.run(columns)
        if number == 1:
            work.truncate()
            work.run(columns)
        if number:
            with pytest.raises(SchemaChangeError):
                deliver(query, target)
            query.restart()
        deliver(query, target)
        held = {key: tuple(row.get(name) for name in columns) for key, row in target.items()}
        rows = [tuple(row) for row in session.execute(f"SELECT {', '.join(columns)} FROM t")]
        session.commit()
        assert held == {(row[1], row[0]): row for row in rows}
        assert len(rows) > 5
        if number < len(ALTERATIONS):
            session.execute(ALTERATIONS[number].format(**words))
            session.commit()


@pytest.mark.parametrize(("identity", "seed"), [("DEFAULT", 1), ("DEFAULT", 2), ("FULL", 3)])
def test_postgres(source: Source, identity: str, seed: int) -> None:
    source.execute(
        "CREATE TABLE t (id integer, part integer, v integer, note text, big text, PRIMARY KEY (part, id))",
        "ALTER TABLE t ALTER big SET STORAGE EXTERNAL",
        f"ALTER TABLE t REPLICA IDENTITY {identity}",
    )
    query = rows_of(source, skipped_operations="none", max_batch_rows="50", segment_bytes="65536")
    database: Database = source.database
    with database.session() as session:
        converge(query, session, seed, {"text": "text", "retype": "ALTER v TYPE bigint"})
    query.stop()


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB", "FULL"])
def test_binlog(shop: MysqlServer, tmp_path: Path, image: str) -> None:  # noqa: F811
    shop.execute(
        "CREATE TABLE t (id int, part int, v int, note varchar(20), big longtext, PRIMARY KEY (part, id))",
        database=DATABASE,
    )
    query = mysql_rows_of(shop, tmp_path, skipped_operations="none", max_batch_rows="50", segment_bytes="65536")
    with Mysql(shop, DATABASE, image).session() as session:
        converge(query, session, len(image), {"text": "text", "retype": "MODIFY v bigint"})
    query.stop()
