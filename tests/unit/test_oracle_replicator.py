"""OpenLogReplicator's protocol, documents and values, and what its server may be told to forget."""

from __future__ import annotations

import json
import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.position import Position, behind
from floodmark.connectors.oracle.redo.scanner import Side
from floodmark.connectors.oracle.replicator.client import MOST_BYTES, ReplicatorClient
from floodmark.connectors.oracle.replicator.confirmation import Confirmations, holds_all
from floodmark.connectors.oracle.replicator.documents import read_documents
from floodmark.connectors.oracle.replicator.protocol import (
    NO_NUMBER,
    Request,
    RequestCode,
    Response,
    ResponseCode,
    framed,
)
from floodmark.connectors.oracle.replicator.transactions import Changes, Checkpoint, Transactions
from floodmark.connectors.oracle.structures.table import Column, Table
from floodmark.connectors.oracle.values.documents import Entries
from floodmark.errors import ConfigError, ConnectError, DecodeError, FloodmarkError, NotReadyError, SourceStateError
from tests.support.oracle.replicator.messages import request, response

XID = "0a000c003c020000"


def test_requests_are_what_a_server_reads() -> None:
    found = request(Request(RequestCode.CONTINUE, "SOURCE", key=(2**63, 300)).encode())
    assert (found.numbers, found.source) == ({1: 2, 8: 2**63, 9: 300}, "SOURCE")
    assert request(Request(RequestCode.START, "Ä", scn=5).encode()).source == "Ä"


def test_responses_are_what_a_server_writes() -> None:
    assert Response.decode(response(4, 2_267_706, (7, 300))) == Response(ResponseCode.REPLICATE, 2_267_706, (7, 300))
    assert Response.decode(response(0)).code == ResponseCode.READY
    assert Response.decode(response(4, 5, (NO_NUMBER, 0))).confirmed[0] == NO_NUMBER
    # Fields of other types are skipped: a text, and eight bytes.
    assert Response.decode(b"\x08\x06" + b"\x42\x02ab" + b"\x11" + bytes(8)).code == ResponseCode.INVALID_DATABASE


@pytest.mark.parametrize("message", [b"\x08", b"\x42\x7fab", b"\xff" * 12, b"HTTP/1.1 400 Bad Request"])
def test_what_is_no_response_is_refused(message: bytes) -> None:
    with pytest.raises(DecodeError, match="no message of OpenLogReplicator"):
        Response.decode(message)


def test_any_bytes_are_a_response_or_refused() -> None:
    source = random.Random(5)
    for _ in range(3000):
        try:
            Response.decode(source.randbytes(source.randrange(20)))
        except DecodeError:
            continue


@contextmanager
def server(answer: Callable[[socket.socket], None]) -> Iterator[ReplicatorClient]:
    """Yield a client of a server that does what a function says."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            conn, _ = listener.accept()
            with conn:
                answer(conn)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        client = ReplicatorClient("127.0.0.1", listener.getsockname()[1], "SOURCE", 0.3, 0.3)
        try:
            yield client
        finally:
            client.close()
            thread.join(5)


def sends(data: bytes) -> Callable[[socket.socket], None]:
    def answer(conn: socket.socket) -> None:
        for place in range(0, len(data), 7):
            conn.sendall(data[place : place + 7])
        conn.recv(1 << 16)
        conn.settimeout(2)
        try:
            conn.recv(1)
        except OSError:
            return

    return answer


def test_documents_arrive_whole_however_they_are_divided() -> None:
    texts = [json.dumps({"a": "x" * size}).encode() for size in (0, 1, 5000, 3)]
    long = struct.pack("<IQ", 0xFFFFFFFF, len(texts[0])) + texts[0]
    with server(sends(b"".join(map(framed, texts)) + long)) as client:
        found: list[bytes] = []
        while len(found) < 5:
            found += client.receive(2)
        assert found == [*texts, texts[0]]


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (struct.pack("<I", MOST_BYTES + 1), SourceStateError, "announces a message"),
        (struct.pack("<IQ", 0xFFFFFFFF, 1 << 60), SourceStateError, "announces a message"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", SourceStateError, "announces a message"),
        (framed(b"\xffno"), SourceStateError, "no document"),
        (framed(b""), SourceStateError, "answered READY"),
        (framed(response(7)), SourceStateError, "INVALID_COMMAND"),
    ],
)
def test_other_streams_are_refused(data: bytes, error: type[Exception], words: str) -> None:
    with server(sends(data)) as client, pytest.raises(error, match=words):
        all_of(client)


def all_of(client: ReplicatorClient) -> None:
    for _ in range(20):
        client.receive(0.2)


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        (6, SourceStateError, "has no source 'SOURCE'"),
        (2, NotReadyError, "still starting"),
        (7, SourceStateError, "INVALID_COMMAND"),
        (99, SourceStateError, "answered 99"),
    ],
)
def test_refusals(code: int, error: type[Exception], words: str) -> None:
    with server(sends(framed(response(code)))) as client, pytest.raises(error, match=words):
        client.info()


def test_a_server_that_does_not_answer() -> None:
    with server(sends(b"")) as client, pytest.raises(NotReadyError, match="one client at a time"):
        client.info()


def test_a_lost_connection() -> None:
    with server(lambda conn: conn.close()) as client, pytest.raises(ConnectError, match="is lost"):
        client.receive(2)
    with pytest.raises(ConnectError, match="can't be reached"):
        ReplicatorClient("127.0.0.1", 1, "SOURCE", 0.3, None)


def head(kind: str, scn: int | None, index: int, **more: Any) -> bytes:
    entry = {"op": kind, "schema": {"owner": "S", "table": "T"}, **more.pop("entry", {})}
    found = {"scn": scn, "tm": 1_795_171_802_000, "c_scn": scn, "c_idx": index, "db": "D", **more}
    if kind != "chkpt":
        found.setdefault("xid", XID)
    return json.dumps({**found, "payload": [entry]}, separators=(",", ":")).encode()


def change(number: int, scn: int = 100, **more: Any) -> bytes:
    return head("c", scn, number + 2, entry={"num": number, "rid": "A", "after": {"ID": number}}, **more)


def of_t(owner: str, table: str) -> bool:
    return (owner, table) == ("S", "T")


def whole(*messages: bytes, most_bytes: int = 1 << 20) -> list[Changes | Checkpoint]:
    found: list[Changes | Checkpoint] = []
    transactions = Transactions(most_bytes)
    # However they come, they say the same.
    for message in messages:
        found += transactions.add(read_documents([message], of_t))
    at_once = list(Transactions(most_bytes).add(read_documents(messages, of_t)))
    assert numbers_in(found) == numbers_in(at_once)
    return found


def numbers_in(found: list[Changes | Checkpoint]) -> list[tuple[Position, int]]:
    return [
        (one.commit, number)
        for one in found
        if isinstance(one, Changes)
        for number in one.rows["SEQUENCE#"].to_pylist()
    ]


def test_transactions_of_several_messages() -> None:
    begin, commit = head("begin", 100, 1), head("commit", 180, 4)
    first, then = whole(begin, change(0), change(1), commit, head("chkpt", 200, 1))
    assert isinstance(first, Changes)
    assert first.commit == Position(180, 0, XID.upper())
    assert first.rows["SEQUENCE#"].to_pylist() == [1, 2]
    assert [json.loads(one) for one in first.rows["SQL_REDO"].to_pylist()][1]["after"] == {"ID": 1}
    assert (first.ends, first.key) == (True, (180, 4))
    assert then == Checkpoint(200, (200, 1))


def test_transactions_of_one_message() -> None:
    entries = [json.loads(change(number))["payload"][0] for number in (0, 1)]
    document = {**json.loads(change(0)), "e_scn": 180, "payload": entries}
    (found, _) = whole(json.dumps(document).encode(), head("chkpt", 200, 1))
    assert isinstance(found, Changes)
    assert (found.commit.scn, found.ends, len(found.rows)) == (180, True, 2)
    assert [json.loads(one)["num"] for one in found.rows["SQL_REDO"].to_pylist()] == [0, 1]


def test_a_transaction_of_which_the_first_messages_were_forgotten() -> None:
    (found,) = whole(change(5), change(6), head("commit", 180, 9))
    assert isinstance(found, Changes)
    assert found.rows["SEQUENCE#"].to_pylist() == [6, 7]


def test_a_large_transaction_comes_in_parts_if_its_commit_is_known() -> None:
    messages = [change(number, e_scn=180) for number in range(4)]
    found = whole(*messages, head("commit", 180, 9, e_scn=180), most_bytes=1)
    shown = [(one.ends, len(one.rows), one.key) for one in found if isinstance(one, Changes)]
    # Each without the last change, which may be the last of all.
    assert shown == [(False, 1, (100, 2)), (False, 1, (100, 3)), (False, 1, (100, 4)), (True, 1, (180, 9))]
    # Without that, it can't have a place in the log before it ends.
    (one,) = whole(*[change(number) for number in range(4)], head("commit", 180, 9), most_bytes=1)
    assert isinstance(one, Changes)
    assert len(one.rows) == 4


def test_a_transaction_that_the_server_divides() -> None:
    commit = head("commit", 180, 9)
    found = whole(change(0), change(1), commit, head("begin", 100, 9), change(0), change(1), commit)
    numbers = [one.rows["SEQUENCE#"].to_pylist() for one in found if isinstance(one, Changes)]
    assert numbers == [[1, 2], [3, 4]]
    # Which part a message is of, its number doesn't say, so the server must keep them.
    assert [one.key is None for one in found if isinstance(one, Changes)] == [False, True]


def test_statements_and_changes_of_one_transaction() -> None:
    statement = head("ddl", 100, 3, entry={"sql": 'ALTER TABLE "S"."T" ADD (V NUMBER)'})
    found = whole(change(0), statement, change(2), head("commit", 180, 9))
    shown = [
        (one.is_statement, one.rows["SEQUENCE#"].to_pylist(), one.ends, one.key)
        for one in found
        if isinstance(one, Changes)
    ]
    assert shown == [(False, [1], False, None), (True, [2], False, None), (False, [3], True, (180, 9))]


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (b'{"scn":1,', "can't be read"),
        (b'{"scn":1}{"scn":2}', "isn't one document"),
        (b'{"c_scn":1.5}', "can't be read"),
        (b"[1]", "can't be read"),
        (b'{"c_scn":1,"c_idx":1,"tm":1,"payload":[]}', "no payload"),
        (head("truncate", 1, 1), "operation 'truncate'"),
        (head("begin", 1, 1, c_scn=None), "no 'c_scn'"),
        (head("begin", 1, 1, c_idx=None), "no 'c_idx'"),
        (head("begin", 1, 1, c_scn=-1), "negative"),
        (head("begin", 1, 1, tm=None), "no 'tm'"),
        (head("begin", 1, 1, xid=None), "no 'xid'"),
        (head("begin", 1, 1, xid="9.3.22158"), "format.xid"),
    ],
)
def test_documents_that_lack_something_or_are_damaged(message: bytes, words: str) -> None:
    with pytest.raises(SourceStateError, match=words) as caught:
        read_documents([message], of_t)
    assert "docs/oracle.md" in caught.value.cure


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([head("c", 1, 1, entry={"after": {}}), head("commit", 2, 2)], "no 'num'"),
        ([change(0), head("commit", None, 2, c_scn=180)], "number the commit"),
        ([change(0), head("chkpt", 200, 1)], "number the commit"),
        ([change(1), change(0), head("commit", 180, 2)], "aren't in order"),
        ([change(0, e_scn=180), change(1, e_scn=181), head("commit", 180, 2)], "two numbers"),
    ],
)
def test_streams_that_lack_something(messages: list[bytes], words: str) -> None:
    with pytest.raises(SourceStateError, match=words):
        whole(*messages)


def test_identifiers_of_transactions_have_one_form() -> None:
    found = read_documents([head("begin", 1, 1, xid="0x000a.00c.0000023c"), head("begin", 1, 2)], of_t)
    assert list(found.xid) == [XID, XID]


def test_a_checkpoint_before_any_transaction_has_no_commit() -> None:
    # The server writes the largest number of 64 bits.
    (found,) = whole(head("chkpt", 200, 1, b_scn=NO_NUMBER, e_scn=NO_NUMBER))
    assert found == Checkpoint(200, (200, 1))


@pytest.mark.parametrize("number", ["inf", "-inf", "nan", "-nan"])
def test_a_number_that_is_no_json_is_an_error_of_its_table(number: str) -> None:
    message = change(0, e_scn=180).replace(b'"after":{"ID":0}', f'"after":{{"ID":{number}}}'.encode())
    (found, _) = whole(message, head("chkpt", 200, 1))
    assert isinstance(found, Changes)
    with pytest.raises(DecodeError, match="can't be read"):
        Entries(found.rows["SQL_REDO"].combine_chunks(), TABLE)


def test_times_have_any_unit() -> None:
    seconds = 1_795_171_802
    messages = [head("begin", 1, 1, tm=seconds * unit) for unit in (1, 10**3, 10**6, 10**9)]
    assert read_documents(messages, of_t).seconds.tolist() == [seconds] * 4


def test_any_damage_is_an_error_of_ours() -> None:
    source, text = random.Random(3), change(0, e_scn=180)
    for _ in range(2000):
        damaged = bytearray(text)
        for _ in range(source.randrange(1, 4)):
            damaged[source.randrange(len(damaged))] = source.randrange(256)
        try:
            list(Transactions(1 << 20).add(read_documents([bytes(damaged)], of_t)))
        except FloodmarkError:
            continue


def forgotten(messages: list[tuple[int, int]], key: tuple[int, int]) -> int:
    """Return how many of its oldest messages a server forgets, whose indices are one lower than those shown."""
    count = 0
    while count < len(messages) and (messages[count][0], messages[count][1] - 1) <= key:
        count += 1
    return count


def test_no_confirmation_concerns_what_was_not_delivered() -> None:
    """Whatever numbers messages have, and however many the server has sent that haven't arrived."""
    source = random.Random(7)
    for _ in range(2000):
        messages = [(source.randrange(1, 6), source.randrange(1, 5)) for _ in range(12)]
        confirmations, kept, done = Confirmations(None), list(messages), 0
        for count, key in enumerate(messages, 1):
            confirmations.reached(behind(count), key, count if source.random() < 0.5 else 0)
            if source.random() < 0.4:
                found = confirmations.upto(behind(source.randrange(count + 1)), confirmations.highest)
                if found is not None:
                    gone = forgotten(kept, found)
                    del kept[:gone]
                    done += gone
                    assert holds_all(found, confirmations.highest)
                    assert done <= count
    assert Confirmations(None).upto(behind(5), (9, 9)) is None


def test_no_more_is_confirmed_than_the_offset_says() -> None:
    confirmations = Confirmations(None)
    for count in range(1, 10):
        confirmations.reached(behind(count), (count, 1), count)
    assert confirmations.upto(behind(9), None) is None
    found = confirmations.upto(behind(9), (4, 1))
    assert found is not None
    assert holds_all(found, (4, 1))
    assert not holds_all(found, (3, 1))


def test_nothing_is_confirmed_inside_a_transaction() -> None:
    # A server that is started again might read on behind it.
    confirmations = Confirmations(None)
    confirmations.reached(behind(90), (90, 1), 90)
    assert confirmations.upto(behind(90), (90, 1)) == (89, (1 << 63) - 1)
    for index in range(1, 100):
        confirmations.reached(str(Position(500, 0, XID.upper(), index)), (100, index))
    assert confirmations.upto(str(Position(500, 0, XID.upper(), 50)), (100, 60)) is None
    assert confirmations.highest == (100, 99)


def test_what_a_server_sends_when_it_is_started_again_was_delivered() -> None:
    # It reads on behind the piece of the log whose number was confirmed; commits in it have higher numbers.
    confirmations = Confirmations(None)
    for number in (90, 100):
        confirmations.reached(str(Position(number + 1, 0, XID.upper()).end()), (number, 3))
        assert confirmations.upto(behind(number + 1), (number, 3)) is None
        confirmations.reached(behind(number + 1), (number, 5), number)
        found = confirmations.upto(behind(number + 1), (number, 5))
        assert found is not None
        assert found[0] == number - 1


def test_what_others_have_confirmed_is_noticed() -> None:
    assert not holds_all((100, 0), None)
    assert holds_all((100, 48), (100, 50))
    assert not holds_all((100, 49), (100, 50))
    assert not holds_all((101, 0), (100, 50))


TABLE = Table(
    "D",
    "S",
    "T",
    (
        Column("ID", "NUMBER", False, 9, 0),
        Column("D", "DATE"),
        Column("T", "TIMESTAMP", scale=9),
        Column("Z", "TIMESTAMP WITH TIME ZONE", scale=6),
        Column("C", "CLOB"),
    ),
    ("ID",),
)


def entries(*rows: str) -> Entries:
    return Entries(pa.array(rows, pa.string()), TABLE, "olr")


def after(row: str) -> list[Any]:
    columns = entries(f'{{"after":{row}}}').columns(Side.NEW)
    return [one.values[0].as_py() for one in columns]


@pytest.mark.parametrize(
    ("nanos", "zone", "local"),
    [
        (0, "+00:00", "1970-01-01 00:00:00.000000000 +00:00"),
        (-1, "-03:30", "1969-12-31 20:29:59.999999999 -03:30"),
        (1_767_337_445_123_456_789, "+05:30", "2026-01-02 12:34:05.123456789 +05:30"),
        (1_783_339_445_000_000_000, "Europe/Warsaw", "2026-07-06 14:04:05.000000000 +02:00"),
        (253_402_300_799_999_999_999, "+00:00", "9999-12-31 23:59:59.999999999 +00:00"),
        (-62_135_596_800_000_000_000, "+00:00", "0001-01-01 00:00:00.000000000 +00:00"),
    ],
)
def test_times(nanos: int, zone: str, local: str) -> None:
    row = after(f'{{"ID":1,"D":{nanos},"T":{nanos},"Z":"{nanos},{zone}","C":null}}')
    assert row[3] == local
    if zone == "+00:00":
        assert row[1:3] == [local[:19], local[: -len(" +00:00")]]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ('{"ID":1,"D":"2026-01-02","T":null,"Z":null,"C":null}', "nanoseconds"),
        ('{"ID":1,"D":null,"T":null,"Z":"5","C":null}', "<nanoseconds>,<zone>"),
        ('{"ID":1,"D":null,"T":null,"Z":"5,Middle/Earth","C":null}', "isn't known"),
        ('{"ID":"?","D":null,"T":null,"Z":null,"C":null}', "isn't a number"),
        ('{"ID":1,"D":null,"T":null,"Z":null,"C":null,"X":1}', "column 'X'"),
        ('{"ID":1,"D":null,"T":null,"C":null}', "lacks the column 'Z'"),
        ('{"ID":[1]}', "can't be read"),
        ("inf", "can't be read"),
        ("7", "can't be read"),
        ("null", "lacks the row after"),
    ],
)
def test_values_that_are_not_the_columns(row: str, words: str) -> None:
    with pytest.raises(DecodeError, match=words):
        after(row)


def test_an_update_that_shows_what_it_did_not_change_lacks_only_nulls() -> None:
    found = entries('{"before":{"ID":1,"D":0},"after":{"ID":1,"D":0,"T":5}}').columns(Side.NEW, True)
    assert [one.values[0].as_py() for one in found][3:] == [None, None]
    # Large objects aren't in the log unless they are written.
    assert [one.unchanged is not None for one in found] == [False, False, False, False, True]
    with pytest.raises(DecodeError, match="lacks the column 'D'"):
        entries('{"before":{"ID":1,"T":4},"after":{"ID":1,"T":5}}').columns(Side.NEW, True)


OPTIONS = {
    "connector": "oracle",
    "topic.prefix": "p",
    "state.dir": "/none",
    "database.hostname": "h",
    "database.user": "u",
    "database.dbname": "D",
}
REPLICATED = {
    "database.connection.adapter": "OLR",
    "openlogreplicator.source": "SOURCE",
    "openlogreplicator.host": "h",
    "openlogreplicator.port": "5000",
}


@pytest.mark.parametrize("name", sorted(REPLICATED.keys() - {"database.connection.adapter"}))
def test_options_that_are_needed(name: str) -> None:
    given = {**OPTIONS, **REPLICATED}
    assert OracleOptions.parse(given).replicates
    del given[name]
    with pytest.raises(ConfigError, match=f"'{name}' is required"):
        OracleOptions.parse(given)
    with pytest.raises(ConfigError, match=f"'{name}' has no effect"):
        OracleOptions.parse({**OPTIONS, name: REPLICATED[name]})


def test_options_of_logminer() -> None:
    given = {**OPTIONS, **REPLICATED, "log.mining.strategy": "online_catalog", "lob.enabled": "true"}
    assert OracleOptions.parse(given).without_effect == ["lob.enabled", "log.mining.strategy"]
    assert OracleOptions.parse({**OPTIONS, "lob.enabled": "true"}).without_effect == []
    with pytest.raises(ConfigError, match=r"log\.mining\.username\.include\.list' has no effect"):
        OracleOptions.parse({**given, "log.mining.username.include.list": "ANN"})
