"""What is asked of LogMiner and stored of it, beside classes of Debezium's Oracle connector.

Recorded with ``python -m tests.conformance.oracle.test_classes``; with a JDK, as many new calls as
``FLOODMARK_REDO_INPUTS`` says are compared, too.
"""

from __future__ import annotations

import random
import re
from typing import Any

import pyarrow as pa
import pytest

from floodmark.connectors.oracle.commit_scn import CommitScn
from floodmark.connectors.oracle.mining import log_queries
from floodmark.connectors.oracle.mining.contents_query import (
    TRACKED,
    ContentsFilter,
    Names,
    buffered_query,
    unbuffered_query,
)
from floodmark.connectors.oracle.mining.logs import LogFile, of_destinations
from floodmark.connectors.oracle.redo.large_values import large_objects
from floodmark.connectors.oracle.redo.scanner import Side
from floodmark.connectors.oracle.redo.statements import StatementReader
from floodmark.connectors.oracle.sql import MOST_CONSTANTS
from floodmark.errors import CheckpointError, DecodeError
from tests.conformance.oracle.recorded_calls import FAILED, RecordedCalls

SCHEMAS = ["A", "app", "SCHEMA$1", "B_C", "A.*"]
TABLES = [r"A\.T", "A.T", r"app\.orders", r"S\$\.T#1", r"A\.T.*"]
USERS = ["JO", "ann", "U$1"]
LOB_COLUMNS = ["ID", "C", "D"]
PIECES = ["a", "'", "''", " ", ";", "\n", " for update", " where ", " := ", "dbms_lob.write(", "Ж", "🐘", ", ", " and "]


class Caller:
    """Makes calls.

    Args:
        chance: of the choices.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def call(self) -> list[Any]:
        kind = self._chance.choice(
            ["buffered query", "unbuffered query", "logs", "commit scn", "lob write", "select lob", "copies"]
        )
        if kind == "commit scn":
            return self._commit_scn()
        if kind == "copies":
            return self._copies()
        if kind == "lob write":
            return self._lob_write()
        if kind == "select lob":
            return self._select_lob()
        return self._logs() if kind == "logs" else [kind, self._options()]

    def _options(self) -> dict[str, str]:
        chance = self._chance
        options = {"log.mining.query.filter.mode": chance.choice(["none", "in", "in", "regex"])}
        for name, values in (
            ("database.pdb.name", ["ORCLPDB1"]),
            ("lob.enabled", ["true", "false"]),
            ("log.mining.strategy", ["hybrid", "online_catalog"]),
            ("schema.history.internal.store.only.captured.tables.ddl", ["true"]),
            ("internal.log.mining.use.cte.query", ["true"]),
            ("signal.data.collection", ["ORCLPDB1.A.SIGNALS", "ORCLPDB1.app.signals"]),
        ):
            if chance.random() < 0.3 and not (name == "lob.enabled" and options.get("log.mining.strategy") == "hybrid"):
                options[name] = chance.choice(values)
        if options.get("lob.enabled") == "true":
            # The two exclude each other.
            options.pop("log.mining.strategy", None)
        for name in TRACKED:
            if chance.random() < 0.1:
                options[f"log.mining.buffer.track.{name.lower()}"] = "false"
        for names, values in (
            (("schema.include.list", "schema.exclude.list"), SCHEMAS),
            (("table.include.list", "table.exclude.list"), TABLES),
            (("log.mining.username.include.list", "log.mining.username.exclude.list"), USERS),
            (("log.mining.clientid.include.list", "log.mining.clientid.exclude.list"), USERS),
        ):
            if chance.random() < 0.5:
                count = MOST_CONSTANTS + 1 if chance.random() < 0.005 else 0
                many = [f"{'A.' if values is TABLES else ''}N{number}" for number in range(count)]
                options[chance.choice(names)] = ",".join(many or chance.sample(values, chance.randint(1, 3)))
        return options

    def _logs(self) -> list[Any]:
        chance = self._chance
        scn, hours = str(chance.randrange(10**15)), chance.choice([0, 0, 1, 48])
        names = chance.sample(["LOG_ARCHIVE_DEST_1", "LOG_ARCHIVE_DEST_2", "DEST_3"], chance.randint(1, 3))
        return chance.choice(
            [
                ["minable logs", scn, hours, chance.random() < 0.5, names],
                ["oldest scn", hours, names],
                ["deleted logs", scn, names],
                ["scn before", scn, 60_000 * chance.randint(1, 500)],
            ]
        )

    def _copies(self) -> list[Any]:
        chance = self._chance
        names = ["LOG_ARCHIVE_DEST_1", "LOG_ARCHIVE_DEST_2", "DEST_3"]
        copies = {
            name: [
                [f"{name}/{thread}_{number}", thread, str(number), str(number * 10), str(number * 10 + 10), True]
                for thread in (1, 2)
                for number in range(1, 5)
                if chance.random() < 0.6
            ]
            for name in chance.sample(names, chance.randint(1, 3))
        }
        return ["logs of destinations", copies, chance.sample(names, chance.randint(1, 3))]

    def _lob_write(self) -> list[Any]:
        chance = self._chance
        text = "".join(chance.choices(PIECES, k=chance.randrange(6)))
        # Debezium takes away a quote of HEXTORAW('').
        binary = chance.random() < 0.4 and text != ""
        value = f"HEXTORAW('{text.encode().hex()}')" if binary else "'" + text.replace("'", "''") + "'"
        name = "b" if binary else chance.choice(["c", "nc"])
        length, offset = chance.randrange(40_000), chance.randint(1, 10**6)
        space = chance.choice(["\n", " \n  ", " "])
        return [
            "lob write",
            f"DECLARE \n loc_{name} CLOB; \nBEGIN\n buf_{name} := {value};{space} "
            f"dbms_lob.write(loc_{name}, {length}, {offset}, buf_{name});{space}END;",
        ]

    def _select_lob(self) -> list[Any]:
        chance = self._chance
        values = []
        for name in ("ID", "D"):
            # Debezium doesn't halve the quotes of these values, so a key that has one isn't found again.
            text = "".join(chance.choices(PIECES, k=chance.randrange(4))).replace("'", "")
            value = chance.choice(
                ["'" + text.replace("'", "''") + "'", "NULL", "HEXTORAW('00ff')", "TO_DATE('x', 'y')"]
            )
            values.append(f'"{name}" IS NULL' if value == "NULL" else f'"{name}" = {value}')
        end = chance.choice([" for update;", " for update"])
        target = chance.choice(["loc_c", "loc_b", "loc_nc", "buf_b"])
        return [
            "select lob",
            "DECLARE \n loc_c CLOB; \n buf_c VARCHAR2(6156); \nBEGIN\n "
            f'select "C" into {target} from "S"."T" where {" and ".join(values)}{end}',
            LOB_COLUMNS,
        ]

    def _commit_scn(self) -> list[Any]:
        chance = self._chance
        names = ["0a", "0b", "0c"]

        def scn() -> int:
            return chance.randint(1, 5)

        entries = [
            chance.choice(
                [
                    f"{scn()}:{thread}:{'-'.join(chance.sample(names, chance.randint(0, 3)))}",
                    f"{scn()}:rs:7:{thread}",
                ]
            )
            for thread in chance.sample([1, 2, 3], chance.randint(1, 3))
        ]
        text = chance.choice([",".join(entries), str(scn())])
        return ["commit scn", text, [[chance.randint(1, 3), str(scn()), chance.choice(names)] for _ in range(5)]]


def ours(call: list[Any]) -> Any:
    """Return what Floodmark makes of a call."""
    match call:
        case ["buffered query", options]:
            return buffered_query(filter_of(options))
        case ["unbuffered query", options]:
            return unbuffered_query(filter_of(options))
        case ["minable logs", scn, hours, archived_only, names]:
            return log_queries.minable_logs(int(scn), hours, archived_only, names)
        case ["oldest scn", hours, names]:
            return log_queries.oldest_scn(hours, names)
        case ["deleted logs", scn, names]:
            return log_queries.deleted_logs(int(scn), names)
        case ["scn before", scn, millis]:
            return log_queries.scn_before(int(scn), millis // 60_000)
        case ["logs of destinations", copies, names]:
            files = {
                name: [
                    LogFile(file, thread, int(number), int(first), int(next_), archived)
                    for file, thread, number, first, next_, archived in found
                ]
                for name, found in copies.items()
            }
            return sorted(one.name for one in of_destinations(files, names))
        case ["lob write", text]:
            written = large_objects.writes(pa.array([text], pa.string()))
            data = written.data[0].as_py()
            shown = f"HEXTORAW('{data}')" if written.binary[0] else data
            return [int(written.offsets[0]), int(written.lengths[0]), shown]
        case ["select lob", text, columns]:
            selected = large_objects.selections(pa.array([text], pa.string()))
            read = StatementReader(columns).read(selected.rows)
            assert read.problems == {}
            values = [read.texts(Side.OLD, number)[0].as_py() for number in range(len(columns))]
            return [selected.columns[0].as_py(), bool(selected.binary[0]), values]
        case ["commit scn", text, questions]:
            found = CommitScn.parse(text)
            handled = [found.has(thread, int(scn), transaction) for thread, scn, transaction in questions]
            return {"stored": str(found), "max": str(found.newest), "handled": handled}
    raise ValueError(call)


def filter_of(options: dict[str, str]) -> ContentsFilter:
    def names(kind: str) -> Names:
        lists = (options.get(f"{kind}.{which}.list", "") for which in ("include", "exclude"))
        return Names(*(tuple(filter(None, one.split(","))) for one in lists))

    def flag(name: str, default: str = "false") -> bool:
        return options.get(name, default) == "true"

    mode: Any = options["log.mining.query.filter.mode"]
    return ContentsFilter(
        pluggable=options.get("database.pdb.name", ""),
        large_objects=flag("lob.enabled"),
        by_object=options.get("log.mining.strategy") == "hybrid",
        captured_ddl=flag("schema.history.internal.store.only.captured.tables.ddl"),
        mode=mode,
        schemas=names("schema"),
        tables=names("table"),
        users=names("log.mining.username"),
        clients=names("log.mining.clientid"),
        signals=tuple(name.partition(".")[2] for name in [options.get("signal.data.collection")] if name),
        tracked=tuple(name for name in TRACKED if flag(f"log.mining.buffer.track.{name.lower()}", "true")),
        relevant=flag("internal.log.mining.use.cte.query"),
    )


def comparable(result: Any) -> Any:
    """Return a result with lists of constants in order: Debezium has some of them in no order."""
    if isinstance(result, list) and all(isinstance(one, str) for one in result):
        return sorted(result)
    if not isinstance(result, str):
        return result
    ordered = re.sub(r"\(('[^()]*')\)", lambda found: f"({','.join(sorted(found[1].split(',')))})", result)
    parts = re.findall(r"REGEXP_LIKE\([^()]*\)", ordered)
    # Expressions that are joined, too.
    return (re.sub(r"REGEXP_LIKE\([^()]*\)", "?", ordered), sorted(parts))


def long_lists(result: Any) -> bool:
    return isinstance(result, str) and result.count("'") > 2 * MOST_CONSTANTS


def compare(call: list[Any], result: Any) -> None:
    if isinstance(result, dict) and FAILED in result:
        raise AssertionError(f"Debezium refuses {call}.")
    found = ours(call)
    if long_lists(result):
        # Lists that are cut into several have no common order.
        assert sorted(re.findall(r"'[^']*'", found)) == sorted(re.findall(r"'[^']*'", result))
        return
    assert comparable(found) == comparable(result), call


CALLS = RecordedCalls("classes.jsonl", 600, lambda chance: Caller(chance).call)


def test_recorded_calls() -> None:
    for call, result in CALLS.recorded():
        compare(call, result)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_generated_calls() -> None:
    for call, result in CALLS.generated():
        compare(call, result)


def test_quotes_in_keys_of_large_objects() -> None:
    statement = """DECLARE BEGIN select "C" into loc_c from "S"."T" where "ID" = 'a''b''''c' for update;"""
    selected = large_objects.selections(pa.array([statement], pa.string()))
    read = StatementReader(LOB_COLUMNS).read(selected.rows)
    assert read.texts(Side.OLD, 0).to_pylist() == ["a'b''c"]


@pytest.mark.parametrize("statement", ["x", "BEGIN buf_c := 'a'; dbms_lob.write(loc_c, x, 1, buf_c); END;", ""])
def test_statements_of_large_objects_in_no_known_form(statement: str) -> None:
    for function in (large_objects.writes, large_objects.selections):
        with pytest.raises(DecodeError, match="form that isn't known"):
            function(pa.array([statement], pa.string()))


def test_quotes_in_names_stay_in_them() -> None:
    odd = ContentsFilter(mode="in", pluggable="O'X", tables=Names(include=("A.O'T",)), users=Names(exclude=("'",)))
    query = buffered_query(odd)
    assert "SRC_CON_NAME = 'O''X'" in query
    assert "IN ('A.O''T')" in query
    assert "UPPER(USERNAME) NOT IN ('''')" in query


@pytest.mark.parametrize("text", ["x", "1:2", "1:a:", "1:2:3:4:5", "1:1:a,"])
def test_a_damaged_commit_scn(text: str) -> None:
    with pytest.raises(CheckpointError, match="commit_scn"):
        CommitScn.parse(text)


def test_commits_are_added() -> None:
    found = CommitScn.parse("").with_commit(1, 5, "0a").with_commit(2, 5, "0b").with_commit(1, 5, "0c")
    assert str(found) == "5:1:0a-0c,5:2:0b"
    assert str(found.with_commit(1, 6, "0d")) == "6:1:0d,5:2:0b"
    assert found.has(1, 4, "0x")
    assert not found.has(1, 5, "0x")
    assert not found.has(3, 1, "0a")


if __name__ == "__main__":
    CALLS.record()
