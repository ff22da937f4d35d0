"""Java's object serialization: what Debezium's file of offsets holds, as Java itself writes it, and damaged data."""

from __future__ import annotations

import contextlib
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.debezium.file_store import FileOffsets
from floodmark.debezium.java_objects import JavaDataError, JavaObject, read_bytes_map, read_object, write_bytes_map
from floodmark.debezium.offsets import StoredOffset, find_offset, stored_offsets
from floodmark.errors import OffsetError

KEY = b'["reference",{"server":"test"}]'
MAP = bytes.fromhex(
    "aced0005737200116a6176612e7574696c2e486173684d61700507dac1c31660d103000246000a6c6f6164466163746f7249000974687265"
    "73686f6c6478703f4000000000000c77080000001000000001757200025b42acf317f8060854e002000078700000001f5b22726566657265"
    "6e6365222c7b22736572766572223a2274657374227d5d7571007e0002000000097b226c736e223a357d78"
)
"""A ``HashMap<byte[], byte[]>`` of Java 17 with one offset."""
ARRAY = bytes.fromhex(
    "aced0005757200135b4c6a6176612e6c616e672e4f626a6563743b90ce589f1073296c02000078700000000a737200116a6176612e6c616e"
    "672e496e746567657212e2a0a4f781873802000149000576616c7565787200106a6176612e6c616e672e4e756d62657286ac951d0b94e08b"
    "0200007870000000077372000e6a6176612e6c616e672e4c6f6e673b8be490cc8f23df0200014a000576616c75657871007e000300000100"
    "0000000074000961c080eda0bdedb88070757200025b42acf317f8060854e00200007870000000020102737200146a6176612e6d6174682e"
    "426967446563696d616c54c71557f981284f0300024900057363616c654c0006696e7456616c7400164c6a6176612f6d6174682f42696749"
    "6e74656765723b7871007e000300000002737200146a6176612e6d6174682e426967496e74656765728cfc9f1fa93bfb1d03000649000862"
    "6974436f756e744900096269744c656e67746849001366697273744e6f6e7a65726f427974654e756d49000c6c6f77657374536574426974"
    "4900067369676e756d5b00096d61676e69747564657400025b427871007e0003fffffffffffffffffffffffefffffffe000000017571007e"
    "00080000000204e278787372000e6a6176612e7574696c2e55554944bc9903f7986d852f0200024a000c6c65617374536967426974734a00"
    "0b6d6f7374536967426974737870bb6d6bb9bd380a11a0eebc999c0b4ef8737200126a6176612e73716c2e54696d657374616d702618d5c8"
    "0153bf650200014900056e616e6f737872000e6a6176612e7574696c2e44617465686a81014b597419030000787077080000018df5005058"
    "781dcd6500737200116a6176612e6c616e672e426f6f6c65616ecd207280d59cfaee0200015a000576616c75657870017372000f6a617661"
    "2e6c616e672e53686f7274684d37133460da5202000153000576616c75657871007e00030003"
)
"""An ``Object[]`` of Java 17 with values of many classes."""


def test_a_map_of_java() -> None:
    assert read_bytes_map(MAP) == {KEY: b'{"lsn":5}'}
    assert write_bytes_map([(KEY, b'{"lsn":5}')]) == MAP, "what is written is what Java writes"


def test_objects_of_java() -> None:
    number, long, text, null, data, decimal, uuid, time, flag, short = read_object(ARRAY)
    assert [number.fields["value"], long.fields["value"], short.fields["value"]] == [7, 1 << 40, 3]
    assert (text, null, data, flag.fields["value"]) == ("a\0\U0001f600", None, b"\1\2", True)
    assert decimal.fields["scale"] == 2
    assert decimal.fields["intVal"].fields["magnitude"] == (1250).to_bytes(2, "big")
    assert uuid.fields["mostSigBits"] & (1 << 64) - 1 == 0xA0EEBC999C0B4EF8
    assert time.fields["nanos"] == 500_000_000
    assert isinstance(time, JavaObject)
    assert time.name == "java.sql.Timestamp"


@given(st.dictionaries(st.binary(max_size=40), st.none() | st.binary(max_size=300), max_size=30))
def test_a_map_is_read_as_it_was_written(items: dict[bytes, bytes | None]) -> None:
    assert read_bytes_map(write_bytes_map(items.items())) == items


@given(st.sampled_from([MAP, ARRAY]), st.data())
def test_damaged_data_is_one_kind_of_error(whole: bytes, data: st.DataObject) -> None:
    with pytest.raises(JavaDataError):
        read_object(whole[: data.draw(st.integers(0, len(whole) - 1))])
    changed = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(JavaDataError):
        read_object(bytes(changed))
    with contextlib.suppress(JavaDataError):
        read_bytes_map(bytes(changed))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(JavaDataError):
        read_bytes_map(b"\xac\xed\x00\x05" + data)


def test_objects_within_objects_have_an_end() -> None:
    with pytest.raises(JavaDataError, match="nested too deeply"):
        read_object(ARRAY[:40] + (b"\0\0\0\1" + b"\x75\x71\0\x7e\0\0") * 200)


@given(st.binary(max_size=300))
def test_a_file_of_anything_is_one_clear_error(content: bytes) -> None:
    store = _Store(content)
    with contextlib.suppress(OffsetError):
        stored_offsets(store)


class _Store(FileOffsets):
    """A store with one value that may be anything."""

    def __init__(self, value: bytes) -> None:
        super().__init__(Path("offsets.dat"))
        self._value = value

    def read(self) -> dict[bytes, bytes | None]:
        return {self._value: KEY, KEY: self._value}


def test_a_store_keeps_what_it_does_not_know(tmp_path: Path) -> None:
    file = tmp_path / "offsets.dat"
    other = b'["another",{"topic":"x"}]'
    file.write_bytes(write_bytes_map([(KEY, b'{"lsn":5}'), (other, b"5"), (b"gone", None)]))
    file.chmod(0o640)
    store = FileOffsets(file, "now")
    assert find_offset(store, "test") == StoredOffset("reference", {"server": "test"}, {"lsn": 5})
    copy = store.write(KEY, b'{"lsn":6}')
    assert read_bytes_map(Path(copy).read_bytes())[KEY] == b'{"lsn":5}'
    assert store.read() == {KEY: b'{"lsn":6}', other: b"5", b"gone": None}
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
