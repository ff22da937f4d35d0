"""Each kind of file in ``state.dir``, changed at each byte and cut at each length: noticed, or as good as before."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from floodmark.capture.seals import opened, sealed
from floodmark.capture.segment import SegmentData
from floodmark.capture.store import SCHEMA_HISTORY, SegmentStore
from floodmark.connectors.load import load_options
from floodmark.connectors.mysql.ddl import statements
from floodmark.connectors.mysql.ddl.column_types import Charset
from floodmark.connectors.mysql.ddl.schema import Schema
from floodmark.connectors.mysql.schema_history.records import HistoryEntry
from floodmark.connectors.mysql.schema_history.store import SchemaHistory
from floodmark.connectors.mysql.structures.session import Server, Session
from floodmark.connectors.schema_history.files import StateDirFiles
from floodmark.errors import DamagedFileError, LogGoneError, SchemaHistoryError
from floodmark.signals.files import InboxChannel, new_signal, send
from floodmark.snapshots.reports import Report, ReportBox
from tests.support.options import REQUIRED

SEGMENT = SegmentData(
    np.frombuffer(b"three records in a payload", np.uint8), np.array([0, 6, 14], np.uint32), {"relations": {"7": "t"}}
)


def damaged(content: bytes) -> Iterator[bytes]:
    """Yield a content changed at each byte, by one bit and as a whole, cut at each length, and with more at its end."""
    for at in range(len(content)):
        for mask in (1 << at % 8, 0xFF):
            yield content[:at] + bytes([content[at] ^ mask]) + content[at + 1 :]
        yield content[:at]
    yield content + b"\0"
    yield content + content


def each_damage(path: Path, check: Callable[[], None]) -> int:
    """Damage a file in every way, checking each; the file is as before at the end."""
    content = path.read_bytes()
    all_damaged = list(damaged(content))
    for broken in all_damaged:
        path.write_bytes(broken)
        check()
    path.write_bytes(content)
    return len(all_damaged)


def refused(action: Callable[[], object], *said: str) -> bool:
    """Return whether an action ends with the error of a damaged file, which says all that it must."""
    try:
        action()
    except DamagedFileError as exc:
        return all(part in str(exc) for part in said)
    return False


def test_segments(tmp_path: Path) -> None:
    store = SegmentStore(str(tmp_path), "owner", "run")
    store.create()
    store.write("00000001.seg", SEGMENT)
    path = tmp_path / "owner" / "run" / "00000001.seg"

    def check() -> None:
        with pytest.raises(DamagedFileError, match=rf"{path}.*Restart the query"):
            store.read("00000001.seg")

    assert each_damage(path, check) > 200
    again = store.read("00000001.seg")
    assert again.payload.tobytes() == SEGMENT.payload.tobytes()
    assert again.starts.tolist() == SEGMENT.starts.tolist()
    path.unlink()
    with pytest.raises(LogGoneError, match="restart the query"):
        store.read("00000001.seg")


def test_segments_under_another_name(tmp_path: Path) -> None:
    stores = [SegmentStore(str(tmp_path), owner, run) for owner, run in (("a", "1"), ("a", "2"), ("b", "1"))]
    for store in stores:
        store.create()
        store.write("00000001.seg", SEGMENT)
        store.write("00000002.seg", SEGMENT)
    first = tmp_path / "a" / "1" / "00000001.seg"
    for other in ("a/1/00000002.seg", "a/2/00000001.seg", "b/1/00000001.seg"):
        first.write_bytes((tmp_path / other).read_bytes())
        with pytest.raises(DamagedFileError, match="checksum"):
            stores[0].read("00000001.seg")


def test_reports_of_chunks_count_as_lost(tmp_path: Path) -> None:
    box = ReportBox(str(tmp_path), "owner")
    box.write("batch", [Report("incremental", (3,), "complete", 7)])
    (path,) = (tmp_path / "owner" / "reports" / "batch").iterdir()

    def check() -> None:
        # What is cut off may be the checksum alone, or nothing but the end of its line.
        assert box.read("batch").of("incremental", 3).outcome in ("nothing", "complete")
        assert box.read("batch").of("incremental", 3).rows in (0, 7)

    assert each_damage(path, check) > 200
    assert box.read("batch").of("incremental", 3).rows == 7


def test_a_report_of_the_log_outlives_one_of_its_copies(tmp_path: Path) -> None:
    box = ReportBox(str(tmp_path), "owner")
    box.write("batch", [Report("log", (), "failed", 0, "public.t", 9, "it is broken")])
    one, other = sorted((tmp_path / "owner" / "reports" / "batch").iterdir())

    def known() -> None:
        assert [failure.oid for failure in box.read("batch").log_failures] == [9]

    def refused_or_known() -> None:
        if not refused(lambda: box.read("batch"), "reports/batch/log-", "execute-snapshot"):
            known()

    each_damage(one, known)
    one.write_bytes(b"")
    assert each_damage(other, refused_or_known) > 200
    known()
    other.write_bytes(b"")
    with pytest.raises(DamagedFileError, match="execute-snapshot"):
        box.read("batch")


def test_signals(tmp_path: Path) -> None:
    options = load_options({**REQUIRED, "state.dir": str(tmp_path)})
    send(options, options.owner, new_signal("log", {"message": "hello"}, "id-1"))
    (path,) = (tmp_path / options.owner / "signals").iterdir()
    whole = InboxChannel(str(tmp_path), options.owner, 0).poll()
    as_good = 0

    def check() -> None:
        nonlocal as_good
        if not refused(
            lambda: InboxChannel(str(tmp_path), options.owner, 0).poll(), path.name, "send the signal again"
        ):
            assert InboxChannel(str(tmp_path), options.owner, 0).poll() == whole
            as_good += 1

    each_damage(path, check)
    # Without its checksum, or a part of it, the text is the whole one.
    assert as_good <= 2
    assert InboxChannel(str(tmp_path), options.owner, 0).poll() == whole


def place(number: int) -> str:
    return f"00{number:08X}-0000-0000"


@pytest.fixture
def history(tmp_path: Path) -> SchemaHistory:
    """Return a history of two statements behind an image."""
    found = SchemaHistory(StateDirFiles(str(tmp_path), "owner"), "prefix")
    schema = Schema({"d": Charset("utf8mb4", "utf8mb4_bin")})
    found.begin(place(0), schema)
    for number, text in enumerate(("CREATE TABLE a (i INT)", "ALTER TABLE a ADD c INT"), 1):
        applied = statements.apply(schema, text, Session("d"), Server())
        found.append(HistoryEntry(place(number), {"file": "b.1", "pos": 4}, 5, text, "d", applied), schema)
        schema = applied.schema
    return found


def reopened(directory: Path) -> SchemaHistory:
    return SchemaHistory(StateDirFiles(str(directory), "owner"), "prefix")


def test_the_schema_history(tmp_path: Path, history: SchemaHistory) -> None:
    newest = history.newest(place(9))
    right = history.load(place(9))
    files = sorted((tmp_path / "owner" / SCHEMA_HISTORY).iterdir())
    assert newest == place(2)
    assert len(files) == 3
    for path in files:

        def check(path: Path = path) -> None:
            with pytest.raises(SchemaHistoryError, match=rf"{path.name}.*snapshot\.mode=recovery"):
                reopened(tmp_path).load(place(9), newest)

        assert each_damage(path, check) > 200
        assert reopened(tmp_path).load(place(9), newest) == right


def test_the_loss_of_each_file_of_the_schema_history(tmp_path: Path, history: SchemaHistory) -> None:
    newest = history.newest(place(9))
    for path in sorted((tmp_path / "owner" / SCHEMA_HISTORY).iterdir()):
        content = path.read_bytes()
        path.unlink()
        with pytest.raises(SchemaHistoryError, match=r"snapshot\.mode=recovery"):
            reopened(tmp_path).load(place(9), newest)
        path.write_bytes(content)
    assert reopened(tmp_path).load(place(9), newest).tables["d", "a"].columns[1].name == "c"


def test_a_history_that_was_rebuilt_is_newer_than_the_offset_says(tmp_path: Path, history: SchemaHistory) -> None:
    newest, schema = history.newest(place(9)), history.load(place(9))
    reopened(tmp_path).begin(place(5), schema)
    again = reopened(tmp_path)
    assert again.load(place(5), newest) == schema
    assert again.newest(place(9)) == place(5)


def test_swapped_files_of_the_schema_history(tmp_path: Path, history: SchemaHistory) -> None:
    del history
    files = sorted((tmp_path / "owner" / SCHEMA_HISTORY).iterdir())
    for one in files:
        for other in files:
            if one < other:
                first, second = one.read_bytes(), other.read_bytes()
                one.write_bytes(second)
                other.write_bytes(first)
                with pytest.raises(SchemaHistoryError, match="checksum"):
                    reopened(tmp_path).load(place(9))
                one.write_bytes(first)
                other.write_bytes(second)


def test_the_history_of_an_earlier_version_is_read(tmp_path: Path, history: SchemaHistory) -> None:
    right = history.load(place(9))
    for path in sorted((tmp_path / "owner" / SCHEMA_HISTORY).iterdir()):
        text = opened(path.name, path.read_bytes())
        path.write_bytes(text + b"%08x\n" % zlib.crc32(text))
    assert reopened(tmp_path).load(place(9)) == right
    path.write_bytes(path.read_bytes().replace(b'"c"', b'"d"'))
    with pytest.raises(SchemaHistoryError, match="checksum"):
        reopened(tmp_path).load(place(9))


def test_seals_hold_for_one_name() -> None:
    assert opened("a", sealed("a", b"text\n")) == b"text\n"
    with pytest.raises(DamagedFileError):
        opened("b", sealed("a", b"text\n"))


@pytest.mark.parametrize("more", [-1, 1, 1 << 20])
def test_a_segment_whose_header_has_another_size(more: int) -> None:
    magic, _, lengths, header, *rest = SEGMENT.to_parts("one.seg")
    size = len(SEGMENT.payload)
    changed = bytes(header).replace(f'"payload_bytes": {size}'.encode(), f'"payload_bytes": {size + more}'.encode())
    assert changed != header
    stored = bytes(lengths)[4:]
    content = b"".join([len(changed).to_bytes(4, "little"), stored, changed, *map(bytes, rest)])
    checksum = zlib.crc32(content, zlib.crc32(b"one.seg")).to_bytes(4, "little")
    with pytest.raises(DamagedFileError, match=r"'one\.seg' cannot be decompressed"):
        SegmentData.from_buffer(memoryview(bytes(magic) + checksum + content), "one.seg")
