"""What a target in a relational database may be like, and what happens when it fails."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest

from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.errors import FloodmarkError, TargetChangedError, TargetError, TargetUnfitError
from floodmark.sinks.relational.access import prove_usable
from floodmark.sinks.relational.options import JdbcOptions
from floodmark.sinks.relational.staging import StageLostError
from tests.support.batch import wait_for
from tests.support.jdbc import Event, PostgresTarget, Query, Target, block, target_on

ONE = pa.schema([("id", pa.int32()), ("v", pa.string())])


@pytest.fixture(params=["pg18", "mysql", "mariadb"])
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    with target_on(request.getfixturevalue(request.param)) as made:
        yield made


@pytest.fixture
def postgres(request: pytest.FixtureRequest) -> Iterator[Target]:
    with target_on(request.getfixturevalue("pg18")) as made:
        yield made


def row(number: int, op: str = "c", at: int = 0, /, **values: Any) -> Event:
    side = "before" if op == "d" else "after"
    return {"op": op, "position": f"{at or number:016X}-00", side: {"id": number, **values}}


def one(*events: Event, columns: pa.Schema = ONE, key: Sequence[str] = ("id",)) -> list[pa.Table]:
    return [block(columns, key, events)]


def test_another_query_is_refused(target: Target, tmp_path: Path) -> None:
    first = Query(target, tmp_path / "a")
    first.write(0, {"public.t": one(row(1, v="a"))})
    with pytest.raises(TargetChangedError, match="rows that this query has not written"):
        Query(target, tmp_path / "b").write(0, {"public.t": one(row(2, v="b"))})
    second = Query(target, tmp_path / "b", {"existing_tables": "empty"})
    second.write(0, {"public.t": one(row(2, v="b"))})
    assert list(target.rows("SELECT id, v FROM public_t")) == [(2, "b")]
    with pytest.raises(TargetChangedError, match="Another query has emptied"):
        first.write(1, {"public.t": one(row(3, v="c"))})


def test_rows_of_users_are_refused(target: Target, tmp_path: Path) -> None:
    target.execute(
        "CREATE TABLE public_t (id int PRIMARY KEY, v varchar(20))", "INSERT INTO public_t VALUES (7, 'own')"
    )
    with pytest.raises(TargetChangedError, match="rows that this query has not written"):
        Query(target, tmp_path).write(0, {"public.t": one(row(1, v="a"))})
    target.execute("DELETE FROM public_t")
    Query(target, tmp_path).write(0, {"public.t": one(row(1, v="a"))})
    assert list(target.rows("SELECT id, v FROM public_t")) == [(1, "a")]


def test_checkpoints_and_targets_that_were_restored(target: Target, tmp_path: Path) -> None:
    query = Query(target, tmp_path)
    for batch in range(3):
        query.write(batch, {"public.t": one(row(batch + 1, v="a"))})
    query.write(2, {"public.t": one(row(3, v="a"))})
    with pytest.raises(TargetChangedError, match="checkpoint is older"):
        query.write(1, {"public.t": one(row(2, v="a"))})
    with pytest.raises(TargetChangedError, match="checkpoint is older"):
        query.write(2, {"public.t": one(row(9, v="a"))})
    with pytest.raises(TargetChangedError, match="lacks micro-batches"):
        query.write(4, {"public.t": one(row(5, v="a"))})
    with pytest.raises(TargetChangedError, match="it has none"):
        Query(target, tmp_path / "other").write(1, {"public.t": one(row(5, v="a"))})
    assert len(target.rows("SELECT * FROM public_t")) == 3


def test_a_micro_batch_that_comes_again_without_rows_that_a_snapshot_has_read(target: Target, tmp_path: Path) -> None:
    query = Query(target, tmp_path)
    read = [row(number, "r", 9, v="r") for number in (2, 3)]
    query.write(0, {"public.t": one(row(1, v="a"), *read)})
    query.write(0, {"public.t": one(row(1, v="a"))})
    query.write(1, {"public.t": one(*(row(number, "r", 20, v="r") for number in (4, 5)))})
    query.write(1, {"public.t": one(row(5, "r", 20, v="r"))})
    with pytest.raises(TargetChangedError, match="checkpoint is older"):
        query.write(1, {"public.t": one(row(6, "r", 30, v="r"))})
    assert len(target.rows("SELECT * FROM public_t")) == 5


def test_a_checkpoint_that_was_restored_in_the_middle_of_a_snapshot(target: Target, tmp_path: Path) -> None:
    """The log may have gone as far in both micro-batches with a number, but the rows that were read are others."""
    query, change = Query(target, tmp_path), row(1, v="a")
    query.write(0, {"public.t": one(change, row(2, "r", 9, v="r"))})
    for rows in ([change, row(3, "r", 10, v="r")], [row(3, "r", 10, v="r")]):
        with pytest.raises(TargetChangedError, match="checkpoint is older"):
            query.write(0, {"public.t": one(*rows)})
    query.write(1, {"public.t": one(row(4, v="d"))})
    with pytest.raises(TargetChangedError, match="checkpoint is older"):
        query.write(1, {"public.t": one(row(4, v="d"), row(5, "r", 12, v="r"))})


def test_a_micro_batch_that_comes_again_with_another_table(target: Target, tmp_path: Path) -> None:
    query, change = Query(target, tmp_path), one(row(1, v="a"))
    query.write(0, {"public.t": change})
    for _ in range(2):
        query.write(0, {"public.t": change, "public.u": one(row(2, v="b"))})
    query.write(0, {"public.u": one(row(2, v="b"))})
    assert [len(target.rows(f"SELECT * FROM public_{table}")) for table in "tu"] == [1, 1]
    with pytest.raises(TargetChangedError, match="checkpoint is older"):
        query.write(0, {"public.u": one(row(3, v="b"))})


def test_a_missing_target(target: Target, tmp_path: Path) -> None:
    query = Query(target, tmp_path)
    query.write(0, {"public.t": one(row(1, v="a"))})
    target.execute("DROP TABLE public_t")
    with pytest.raises(TargetChangedError, match="is gone"):
        query.write(1, {"public.t": one(row(2, v="b"))})
    # The database knows it too.
    with pytest.raises(TargetChangedError, match="is gone"):
        Query(target, tmp_path / "lost", query=query.query).write(1, {"public.t": one(row(2, v="b"))})
    again = Query(target, tmp_path, {"missing_tables": "read"}, query=query.query)
    again.write(1, {"public.t": one(row(2, v="b"))})
    assert list(target.rows("SELECT id FROM public_t")) == [(2,)]
    assert signals(tmp_path)


def signals(state: Path) -> list[str]:
    return [
        path.read_text() for path in state.rglob("*.json") if "execute-snapshot" in path.read_text(errors="replace")
    ]


def test_new_columns_and_wider_types(target: Target, tmp_path: Path) -> None:
    query = Query(target, tmp_path)
    query.write(0, {"public.t": one(row(1, v="a"))})
    wider = pa.schema([("id", pa.int64()), ("v", pa.string()), ("n", pa.decimal128(10, 2))])
    query.write(1, {"public.t": one(row(1 << 40, v="b", n=None), row(2, v="c", n=3), columns=wider)})
    assert list(target.rows("SELECT id, v, n FROM public_t ORDER BY id")) == [
        (1, "a", None),
        (2, "c", 3),
        (1 << 40, "b", None),
    ]
    assert len(signals(tmp_path)) == 1
    narrow = pa.schema([("id", pa.int16()), ("v", pa.string())])
    query.write(2, {"public.t": one(row(3, v="d"), columns=narrow)})
    assert len(target.rows("SELECT * FROM public_t")) == 4


def test_structures_that_change_within_a_micro_batch(target: Target, tmp_path: Path) -> None:
    query = Query(target, tmp_path)
    more = pa.schema([("id", pa.int64()), ("v", pa.string()), ("w", pa.int32())])
    blocks = [*one(row(1, v="a"), row(2, v="b")), *one(row(2, "u", 9, v="c", w=5), columns=more)]
    query.write(0, {"public.t": blocks})
    assert list(target.rows("SELECT id, v, w FROM public_t ORDER BY id")) == [(1, "a", None), (2, "c", 5)]


def test_a_target_is_set_aside(target: Target, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    query = Query(target, tmp_path)
    query.write(0, {"public.t": one(row(1, v="a")), "public.u": one(row(1, v="a"))})
    other = pa.schema([("id", pa.int32()), ("v", pa.int32())])
    with caplog.at_level(logging.ERROR):
        query.write(1, {"public.t": one(row(2, v=5), columns=other), "public.u": one(row(2, v="b"))})
    assert query.targets.aside() == {"public.t"}
    assert len(target.rows("SELECT * FROM public_u")) == 2
    # The database knows it even if state.dir is lost.
    query = Query(target, tmp_path / "lost", query=query.query)
    query.write(2, {"public.t": one(row(3, v="c")), "public.u": one(row(3, v="c"))})
    assert query.targets.aside() == {"public.t"}
    ((reason,),) = target.rows("SELECT reason FROM floodmark_set_aside")
    assert "'v'" in reason
    target.execute("ALTER TABLE public_t DROP COLUMN v", "DELETE FROM floodmark_set_aside")
    query.write(3, {"public.t": one(row(4, v=7), columns=other)})
    assert list(target.rows("SELECT id, v FROM public_t")) == [(4, 7)]
    assert len(signals(tmp_path / "lost")) == 1


@pytest.mark.parametrize("is_dropped", [False, True])
def test_a_mark_that_is_removed_and_nothing_remembers(target: Target, tmp_path: Path, is_dropped: bool) -> None:
    query = Query(target, tmp_path)
    query.write(0, {"public.t": one(row(1, v="a")), "public.u": one(row(1, v="a"))})
    query.write(1, {"public.t": one(row(2, v=5), columns=pa.schema([("id", pa.int32()), ("v", pa.int32())]))})
    target.execute("DELETE FROM floodmark_set_aside")
    if is_dropped:
        target.execute("DROP TABLE public_t")
    query = Query(target, tmp_path / "lost", query=query.query)
    query.write(2, {"public.t": one(row(3, v="c"))})
    assert list(target.rows("SELECT id, v FROM public_t")) == [(3, "c")]
    assert len(signals(tmp_path / "lost")) == 1
    query.write(3, {"public.t": one(row(4, v="d"))})
    assert len(signals(tmp_path / "lost")) == 1


def test_a_table_that_fails_alone_ends_the_query(target: Target, tmp_path: Path) -> None:
    query = Query(target, tmp_path)
    query.write(0, {"public.t": one(row(1, v="a"))})
    with pytest.raises(TargetUnfitError, match="but the source's would be"):
        query.write(1, {"public.t": one(row(2, v=5), columns=pa.schema([("id", pa.int32()), ("v", pa.int32())]))})
    query = Query(target, tmp_path, source={"errors_tables": "fail"}, query=query.query)
    with pytest.raises(TargetUnfitError, match="for the key"):
        query.write(1, {"public.t": one(row(2, v="a"), key=["v"]), "public.u": one(row(2, v="a"))})


def test_values_that_break_rules_of_the_target(target: Target, tmp_path: Path) -> None:
    query = Query(target, tmp_path)
    target.execute("CREATE TABLE public_t (id int PRIMARY KEY, v varchar(3) NOT NULL)")
    query.write(0, {"public.t": one(row(1, v="abc")), "public.u": one(row(1, v="abc"))})
    # One that is too long spares the others.
    query.write(1, {"public.t": one(row(2, v="long")), "public.u": one(row(2, v="long"))})
    assert query.targets.aside() == {"public.t"}
    assert len(target.rows("SELECT * FROM public_t")) == 1
    assert len(target.rows("SELECT * FROM public_u")) == 2
    ((reason,),) = target.rows("SELECT reason FROM floodmark_set_aside")
    assert "'long'" not in reason


HOSTILE = ("a\"b`c'd", "e;--%s", "f\\g", "%", "ü{}", "select")


def test_hostile_names_and_values(target: Target, tmp_path: Path) -> None:
    query = Query(target, tmp_path)
    columns = pa.schema([("id", pa.int32()), *((name, pa.string()) for name in HOSTILE)])
    values = {name: f"{name}'\"\\\n\t\r`; DROP TABLE x; --%s 😀" for name in HOSTILE}
    key = ["id", HOSTILE[0]]
    for batch, staged in enumerate((False, True)):
        query.staged = staged
        lacking = {**row(1, "u", 5, **{**values, HOSTILE[1]: None}), "unavailable": [HOSTILE[1]]}
        table = f"public.{HOSTILE[0]}%{batch}"
        query.write(2 * batch, {table: one(row(1, **values), row(2, **values), columns=columns, key=key)})
        query.write(2 * batch + 1, {table: one(lacking, row(2, "d", 6, **values), columns=columns, key=key)})
        name = query.dialect.full_name(f"public_{HOSTILE[0]}%{batch}")
        chosen = ", ".join(map(query.dialect.quote, HOSTILE))
        assert list(query.targets.session().query(f"SELECT {chosen} FROM {name}")) == [tuple(values.values())]


@pytest.mark.parametrize("name", ["x" * 65, "x" * 300])
def test_names_that_are_too_long(target: Target, tmp_path: Path, name: str) -> None:
    query = Query(target, tmp_path)
    long = pa.schema([("id", pa.int32()), (name, pa.string())])
    found = {f"public.{name}": one(row(1, v="a")), "public.c": one(row(1, **{name: "a"}), columns=long)}
    query.write(0, {**found, "public.u": one(row(1, v="a"))})
    assert query.targets.aside() == {f"public.{name}", "public.c"}


def test_targets_with_one_name(target: Target, tmp_path: Path) -> None:
    query = Query(target, tmp_path)
    query.write(0, {"a_b.c": one(row(1, v="a")), "u.u": one(row(1, v="a"))})
    query.write(1, {"a.b_c": one(row(2, v="a"))})
    assert query.targets.aside() == {"a.b_c"}


def test_keys_that_differ_in_case_or_spaces(target: Target, tmp_path: Path) -> None:
    query = Query(target, tmp_path)
    columns = pa.schema([("id", pa.string()), ("v", pa.string())])
    keys = ["a", "A", "a ", "ä", "a\t"]
    events = [{"op": "c", "position": f"{at:04}", "after": {"id": key, "v": key}} for at, key in enumerate(keys)]
    query.write(0, {"public.t": [block(columns, ["id"], events)]})
    assert sorted(target.rows("SELECT id, v FROM public_t")) == sorted((key, key) for key in keys)


def test_all_types(target: Target, tmp_path: Path) -> None:
    columns = pa.schema(
        [
            ("id", pa.int64()),
            *((str(kind), kind) for kind in (pa.bool_(), pa.int16(), pa.int32(), pa.uint64(), pa.float32())),
            *((str(kind), kind) for kind in (pa.float64(), pa.decimal128(38, 10), pa.string(), pa.binary())),
            *((str(kind), kind) for kind in (pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"))),
            ("list", pa.list_(pa.field("element", pa.string()))),
        ]
    )
    query = Query(target, tmp_path)
    values = {"bool": True, "int16": -1, "int32": 1, "uint64": (1 << 64) - 1, "float": 0.1, "double": 1e300}
    more = {"decimal128(38, 10)": "1.5", "string": "\N{SNOWMAN}😀", "binary": b"\0\xff"}
    rows = [row(1, **values, **more, list=["a", None]), row(2)]
    for staged in (False, True):
        query.staged = staged
        rows[0]["after"]["decimal128(38, 10)"] = pa.scalar("1.5").cast(pa.decimal128(38, 10)).as_py()
        query.write(int(staged), {f"public.t{int(staged)}": one(*rows, columns=columns)})
        found = sorted(target.rows(f"SELECT * FROM public_t{int(staged)}"), key=itemgetter(0))
        assert found[0][4] == (1 << 64) - 1
        assert abs(found[0][5] - 0.1) < 1e-6
        assert found[0][6] == 1e300
        assert found[0][8:10] == ("\N{SNOWMAN}😀", b"\0\xff")
        assert set(found[1][1:-1]) == {None}


def test_values_that_the_database_lacks(postgres: Target, tmp_path: Path) -> None:
    query = Query(postgres, tmp_path)
    query.write(0, {"public.t": one(row(1, v="a\0b"), row(2, v="ok"))})
    assert postgres.rows("SELECT id, v FROM public_t ORDER BY id") == [(1, None), (2, "ok")]


def test_types_of_users(postgres: Target, tmp_path: Path) -> None:
    postgres.execute(
        "CREATE TYPE mood AS ENUM ('sad', 'happy')",
        "CREATE TABLE public_t (id uuid PRIMARY KEY, j jsonb, m mood, own text DEFAULT 'kept', _position text)",
    )
    columns = pa.schema([("id", pa.string()), ("j", pa.string()), ("m", pa.string())])
    number = "00000000-0000-0000-0000-00000000000"
    events: list[Event] = [
        {"op": "c", "position": "1", "after": {"id": number + "1", "j": '{"a": 1}', "m": "sad"}},
        {"op": "c", "position": "2", "after": {"id": number + "2", "j": None, "m": "sad"}},
    ]
    query = Query(postgres, tmp_path)
    query.write(0, {"public.t": [block(columns, ["id"], events)]})
    postgres.execute("UPDATE public_t SET own = 'mine'")
    later: list[Event] = [
        {"op": "u", "position": "3", "after": {"id": number + "1", "m": "happy"}, "unavailable": ["j"]},
        {"op": "d", "position": "4", "before": {"id": number + "2"}},
    ]
    query.write(1, {"public.t": [block(columns, ["id"], later)]})
    assert postgres.rows("SELECT id::text, j, m::text, own FROM public_t") == [
        (number + "1", {"a": 1}, "happy", "mine")
    ]


def test_no_evolution(target: Target, tmp_path: Path) -> None:
    target.execute("CREATE TABLE public_u (id int PRIMARY KEY, v varchar(9), _position varchar(64))")
    query = Query(target, tmp_path, {"schema_evolution": "none"})
    query.write(0, {"public.t": one(row(1, v="a")), "public.u": one(row(1, v="a"))})
    assert query.targets.aside() == {"public.t"}
    assert list(target.rows("SELECT id, v FROM public_u")) == [(1, "a")]


def test_staged_rows_that_were_lost(target: Target, tmp_path: Path) -> None:
    query = Query(target, tmp_path, staged=True)
    query.write(0, {"public.t": one(row(1, v="a"))})
    messages = query.messages(1, "public.t", one(row(2, v="b")))
    target.execute(f"DELETE FROM {messages[0]['staged']}")
    with pytest.raises(StageLostError):
        query.targets.write(1, {"public.t": messages})
    query.write(1, {"public.t": one(row(2, v="b"))})
    assert len(target.rows("SELECT * FROM public_t")) == 2
    Query(target, tmp_path, query=query.query)
    assert not [name for name in target.tables() if name.startswith("floodmark_stage")]


@pytest.mark.slow
def test_a_crash_of_the_target(tmp_path: Path) -> None:
    with EmbeddedPostgres(18) as server:
        target = PostgresTarget(server, "postgres")
        query = Query(target, tmp_path, {"flush_max_retries": "20"}, staged=True)
        query.write(0, {"public.t": one(row(1, v="a"))})
        staged = query.messages(1, "public.t", one(row(2, v="b")))
        server.stop("immediate")
        starting = Thread(target=server.start)
        starting.start()
        # The server is waited for; it has emptied the unlogged table.
        with pytest.raises(StageLostError, match="has 0 rows, but a task had loaded 1"):
            query.targets.write(1, {"public.t": staged})
        starting.join()
        query.write(1, {"public.t": one(row(2, v="b"))})
        assert target.rows("SELECT id, v FROM public_t ORDER BY id") == [(1, "a"), (2, "b")]


def test_a_lock_that_is_held_is_waited_for(target: Target, tmp_path: Path) -> None:
    query = Query(target, tmp_path)
    query.write(0, {"public.t": one(row(1, v="a"))})
    holder = Query(target, tmp_path / "other").dialect.connect()
    holder.begin()
    holder.execute("UPDATE public_t SET v = 'mine'")
    writer = Thread(target=lambda: query.write(1, {"public.t": one(row(1, "u", 2, v="b"))}))
    writer.start()
    holder.rollback()
    writer.join()
    assert list(target.rows("SELECT v FROM public_t")) == [("b",)]


def test_a_deadlock(postgres: Target, tmp_path: Path) -> None:
    query = Query(postgres, tmp_path)
    query.write(0, {"public.t": one(row(1, v="a"), row(2, v="a"))})
    other = query.dialect.connect()
    other.begin()
    other.execute("UPDATE public_t SET v = 'mine' WHERE id = 2")
    changes = one(row(1, "u", 3, v="b"), row(2, "u", 4, v="b"))
    writer = Thread(target=lambda: query.write(1, {"public.t": changes}))
    writer.start()
    wait_for(lambda: bool(postgres.rows("SELECT 1 FROM pg_locks WHERE NOT granted")), "the sink waits for the other")
    # Whoever began to wait first looks first for a deadlock, and is the one to give way.
    other.execute("UPDATE public_t SET v = 'mine' WHERE id = 1")
    other.commit()
    writer.join()
    assert postgres.rows("SELECT id, v FROM public_t ORDER BY id") == [(1, "b"), (2, "b")]


def test_lost_connections(target: Target, tmp_path: Path) -> None:
    query = Query(target, tmp_path)
    query.write(0, {"public.t": one(row(1, v="a"))})
    # The server ends the session; the next statement finds out.
    end(target)
    query.write(1, {"public.t": one(row(2, v="b"))})
    assert len(target.rows("SELECT * FROM public_t")) == 2


def end(target: Target) -> None:
    """End all other sessions in the target's database."""
    name = target.options["connection.url"].rsplit("/", 1)[1]
    if "postgresql" in target.options["connection.url"]:
        target.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE datname = '{name}' AND pid <> pg_backend_pid()"
        )
        return
    statement = f"SELECT id FROM information_schema.processlist WHERE db = '{name}' AND id <> CONNECTION_ID()"
    for (number,) in target.rows(statement):
        target.execute(f"KILL {number}")


def test_an_unknown_outcome_of_the_commit(target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = Query(target, tmp_path)
    query.write(0, {"public.t": one(row(1, v="a"))})
    kind = type(query.targets.session())
    commit = kind.commit
    calls: list[int] = []

    def cut(session: Any) -> None:
        calls.append(1)
        commit(session)
        if len(calls) == 1:
            # The answer is lost, not the commit.
            end(target)
            session.query("SELECT 1")

    monkeypatch.setattr(kind, "commit", cut)
    other = one(row(2, v=5), columns=pa.schema([("id", pa.int32()), ("v", pa.int32())]))
    query.write(1, {"public.t": other, "public.k": one(row(2, v="b"), key=[])})
    assert calls == [1]
    assert len(target.rows("SELECT * FROM public_k")) == 1
    # What was set aside stays so.
    query.write(2, {"public.t": one(row(3, v="c")), "public.k": one(row(3, v="b"), key=[])})
    assert query.targets.aside() == {"public.t"}
    assert list(target.rows("SELECT id FROM public_t")) == [(1,)]


def test_rights(postgres: Target, tmp_path: Path) -> None:
    postgres.execute("DROP ROLE IF EXISTS poor", "CREATE ROLE poor LOGIN", "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    options = {"connection_username": "poor"}
    with pytest.raises(TargetError, match=r"permission denied for schema public.*docs/jdbc\.md"):
        Query(postgres, tmp_path, options)
    with pytest.raises(TargetError, match="permission denied"):
        prove_usable(JdbcOptions.parse({**postgres.options, "connection.username": "poor"}))
    assert prove_usable(JdbcOptions.parse(postgres.options)) == "PostgreSQL 18"
    postgres.execute("ALTER ROLE poor SET default_transaction_read_only = on", "GRANT CREATE ON SCHEMA public TO poor")
    with pytest.raises(TargetError, match="read-only"):
        Query(postgres, tmp_path, options)
    postgres.execute("REVOKE CREATE ON SCHEMA public FROM poor", "DROP ROLE poor")


def test_a_loop_is_refused(postgres: Target, tmp_path: Path) -> None:
    options = {
        "database_hostname": "127.0.0.1",
        "database_port": postgres.options["connection.url"].rsplit(":", 1)[1].split("/")[0],
        "database_dbname": postgres.options["connection.url"].rsplit("/", 1)[1],
        "database_user": postgres.options["connection.username"],
    }
    with pytest.raises(TargetChangedError, match="for ever"):
        Query(postgres, tmp_path, source={**options, "table_include_list": ".*"}).write(
            0, {"public.t": one(row(1, v="a"))}
        )
    chosen = {**options, "table_include_list": r"public\.t"}
    Query(postgres, tmp_path, source=chosen).write(0, {"public.t": one(row(1, v="a"))})


def test_targets_that_cannot_be_reached(postgres: Target, tmp_path: Path) -> None:
    options = {**postgres.options, "flush.max.retries": "1", "flush.retry.delay.ms": "1"}
    for changed, told in (
        ({"connection.url": "jdbc:postgresql://127.0.0.1:1/x"}, "Cannot connect to the target 127.0.0.1:1/x"),
        ({"connection.url": options["connection.url"] + "_none"}, "connection.url"),
        ({"connection.url": "jdbc:mysql://127.0.0.1:1/x"}, "Cannot connect to the target 127.0.0.1:1/x"),
    ):
        given = {name.replace(".", "_"): value for name, value in {**options, **changed}.items()}
        with pytest.raises(FloodmarkError, match=told):
            Query(postgres, tmp_path, given)
