"""Sets of global transaction identifiers (GTIDs).

MySQL's sets hold intervals of numbers for each source, which is a server's UUID and, from 8.3 on, a tag:
``3e11fa47-…:1-5:8:tag:1-2``. MariaDB's are lists of the last transaction of each domain and server:
``0-1-270,1-2-13``; such a list covers all transactions up to those.

Source: MySQL's documentation, "GTID Format and Storage"; MariaDB's, "Global Transaction ID".
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from floodmark.config.model import matches
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.errors import CheckpointError

Source: TypeAlias = tuple[str, str]
"""UUID in lower case, and tag; the tag is empty if there is none."""
Intervals: TypeAlias = tuple[tuple[int, int], ...]
"""First and last number of each run, in order, not touching each other."""
Taken: TypeAlias = Callable[[str], bool]

MAX_NUMBER = (1 << 63) - 1

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TAG = re.compile(r"[a-z_][a-z0-9_]{0,31}")
_INTERVAL = re.compile(r"(\d+)(?:-(\d+))?")
_MARIADB = re.compile(r"(\d+)-(\d+)-(\d+)")
_TAGGED = 1


def source_filter(options: BinlogOptions) -> Taken | None:
    """Return a predicate that accepts the sources whose transactions count; None if the options accept all."""
    includes, excludes = options.gtid_source_includes, options.gtid_source_excludes
    if includes:
        return lambda source: matches(includes, source)
    return (lambda source: not matches(excludes, source)) if excludes else None


def sources(flavor: str, gtids: pa.StringArray) -> pa.DictionaryArray:
    """Return the sources of GTIDs as the filters name them: MySQL's UUIDs, MariaDB's domains and servers.

    Args:
        flavor: ``mysql`` or ``mariadb``.
        gtids: GTIDs; nulls stay null.
    """
    number = "-[0-9]+$" if flavor == "mariadb" else ":.*"
    return pc.replace_substring_regex(gtids, number, "").dictionary_encode()


@dataclass(frozen=True)
class MysqlGtids:
    """A set of MySQL's GTIDs; sources without numbers are left out."""

    intervals: Mapping[Source, Intervals]

    @classmethod
    def parse(cls, text: str) -> MysqlGtids:
        """Parse a set; upper case, spaces and overlaps are allowed, as on the server.

        Raises:
            CheckpointError: the text is not such a set.
        """
        found: dict[Source, list[tuple[int, int]]] = {}
        for item in filter(None, ("".join(part.split()) for part in text.lower().split(","))):
            uuid, *parts = item.split(":")
            tag = ""
            if not _UUID.fullmatch(uuid) or not parts:
                raise _not_a_set(text)
            for part in parts:
                interval = _INTERVAL.fullmatch(part)
                if interval is None:
                    if not _TAG.fullmatch(part):
                        raise _not_a_set(text)
                    tag = part
                    continue
                first = int(interval[1])
                last = int(interval[2] or first)
                if not 0 < first <= MAX_NUMBER or last > MAX_NUMBER:
                    raise _not_a_set(text)
                if first <= last:
                    found.setdefault((uuid, tag), []).append((first, last))
        return cls({source: _merged(runs) for source, runs in found.items()})

    @classmethod
    def one(cls, uuid: str, number: int, tag: str = "") -> MysqlGtids:
        """Return the set of one transaction."""
        return cls({(uuid.lower(), tag): ((number, number),)})

    def __str__(self) -> str:
        texts = []
        for uuid, group in groupby(sorted(self.intervals), key=lambda source: source[0]):
            parts = [uuid]
            for source in group:
                parts += [source[1]] if source[1] else []
                parts += [f"{a}-{b}" if b > a else str(a) for a, b in self.intervals[source]]
            texts.append(":".join(parts))
        return ",".join(texts)

    def __bool__(self) -> bool:
        return bool(self.intervals)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MysqlGtids) and dict(self.intervals) == dict(other.intervals)

    def __hash__(self) -> int:
        return hash(str(self))

    def contains(self, uuid: str, number: int, tag: str = "") -> bool:
        """Return whether a transaction belongs to the set."""
        return any(a <= number <= b for a, b in self.intervals.get((uuid.lower(), tag), ()))

    def __or__(self, other: MysqlGtids) -> MysqlGtids:
        both = {*self.intervals, *other.intervals}
        return MysqlGtids({one: _merged([*self.intervals.get(one, ()), *other.intervals.get(one, ())]) for one in both})

    def __sub__(self, other: MysqlGtids) -> MysqlGtids:
        left = {one: _without(runs, other.intervals.get(one, ())) for one, runs in self.intervals.items()}
        return MysqlGtids({one: runs for one, runs in left.items() if runs})

    def __le__(self, other: MysqlGtids) -> bool:
        return not self - other

    def add(self, source: Source, numbers: Iterable[tuple[int, int]]) -> MysqlGtids:
        """Return the set with more runs of numbers of one source."""
        runs = _merged([*self.intervals.get(source, ()), *numbers])
        return MysqlGtids({**self.intervals, source: runs})

    def filtered(self, taken: Taken) -> MysqlGtids:
        """Return the part whose sources the filter accepts; a source is its UUID."""
        return MysqlGtids({one: runs for one, runs in self.intervals.items() if taken(one[0])})

    def encode(self) -> bytes:
        """Encode the set in the form of COM_BINLOG_DUMP_GTID and of PREVIOUS_GTIDS events."""
        tagged = any(tag for _, tag in self.intervals)
        count = len(self.intervals)
        # With tags, the lowest and the highest byte hold the format, and the count lies between them.
        pieces = [struct.pack("<Q", _TAGGED << 56 | count << 8 | _TAGGED if tagged else count)]
        for (uuid, tag), runs in sorted(self.intervals.items()):
            pieces.append(bytes.fromhex(uuid.replace("-", "")))
            if tagged:
                # The length is a variable-length integer; those of one byte are shifted by one bit.
                pieces.append(bytes([len(tag) << 1]) + tag.encode())
            pieces.append(struct.pack("<Q", len(runs)))
            # Encoded intervals are half-open.
            pieces += [struct.pack("<QQ", first, last + 1) for first, last in runs]
        return b"".join(pieces)

    @classmethod
    def decode(cls, data: bytes) -> MysqlGtids:
        """Decode a set from its binary form.

        Raises:
            struct.error: the data is too short.
        """
        (count,) = struct.unpack_from("<Q", data)
        tagged = count >> 56 == _TAGGED
        if tagged:
            count = count << 8 >> 16 & (1 << 48) - 1
        at = 8
        found = {}
        for _ in range(count):
            uuid, tag = uuid_text(data[at : at + 16]), ""
            at += 16
            if tagged:
                size = data[at] >> 1
                tag = data[at + 1 : at + 1 + size].decode()
                at += 1 + size
            (runs,) = struct.unpack_from("<Q", data, at)
            at += 8
            numbers = struct.unpack_from(f"<{2 * runs}Q", data, at)
            at += 16 * runs
            found[uuid, tag] = tuple((a, b - 1) for a, b in zip(numbers[::2], numbers[1::2], strict=True))
        return cls(found)


@dataclass(frozen=True)
class MariadbGtids:
    """A list of MariaDB's GTIDs: the last number of each (domain, server)."""

    last: Mapping[tuple[int, int], int]

    @classmethod
    def parse(cls, text: str) -> MariadbGtids:
        """Parse a list.

        Raises:
            CheckpointError: the text is not such a list.
        """
        last: dict[tuple[int, int], int] = {}
        for item in filter(None, (part.strip() for part in text.split(","))):
            found = _MARIADB.fullmatch(item)
            if found is None:
                raise _not_a_set(text)
            domain, server, number = map(int, found.groups())
            last[domain, server] = max(number, last.get((domain, server), 0))
        return cls(last)

    def __str__(self) -> str:
        return ",".join(f"{domain}-{server}-{number}" for (domain, server), number in sorted(self.last.items()))

    def __bool__(self) -> bool:
        return bool(self.last)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        return ((domain, server, number) for (domain, server), number in self.last.items())

    def contains(self, domain: int, server: int, number: int) -> bool:
        """Return whether the list covers a transaction."""
        return number <= self.last.get((domain, server), 0)

    def __or__(self, other: MariadbGtids) -> MariadbGtids:
        both = {*self.last, *other.last}
        return MariadbGtids({one: max(self.last.get(one, 0), other.last.get(one, 0)) for one in both})

    def __sub__(self, other: MariadbGtids) -> MariadbGtids:
        """Return the ends of what the other list does not cover."""
        return MariadbGtids({one: number for one, number in self.last.items() if number > other.last.get(one, 0)})

    def __le__(self, other: MariadbGtids) -> bool:
        return not self - other

    def add(self, domain: int, server: int, number: int) -> MariadbGtids:
        """Return the list after one more transaction."""
        return self | MariadbGtids({(domain, server): number})

    def filtered(self, taken: Taken) -> MariadbGtids:
        """Return the part whose sources the filter accepts; a source is ``<domain>-<server>``."""
        return MariadbGtids({one: number for one, number in self.last.items() if taken(f"{one[0]}-{one[1]}")})

    def domains(self) -> dict[int, int]:
        """Return the last number of each domain."""
        return {domain: number for domain, _, number in self.positions()}

    def positions(self) -> MariadbGtids:
        """Return the last GTID of each domain, which is the form of a replica's position."""
        chosen: dict[int, tuple[int, int]] = {}
        for domain, server, number in self:
            chosen[domain] = max((number, server), chosen.get(domain, (0, 0)))
        return MariadbGtids({(domain, server): number for domain, (number, server) in chosen.items()})


Gtids: TypeAlias = MysqlGtids | MariadbGtids


def parse_gtids(flavor: str, text: str) -> Gtids:
    """Parse a set of GTIDs in the format of a kind of server.

    Raises:
        CheckpointError: the text is not such a set.
    """
    return MariadbGtids.parse(text) if flavor == "mariadb" else MysqlGtids.parse(text)


def lacking(ours: Gtids, theirs: Gtids) -> Gtids:
    """Return what the first set holds and the second doesn't; both are of the same kind of server."""
    if isinstance(ours, MysqlGtids) and isinstance(theirs, MysqlGtids):
        return ours - theirs
    assert isinstance(ours, MariadbGtids)
    assert isinstance(theirs, MariadbGtids)
    return ours - theirs


def uuid_text(data: bytes) -> str:
    """Return the text of a UUID of 16 bytes."""
    digits = data.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _merged(runs: Iterable[tuple[int, int]]) -> Intervals:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(runs):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)


def _without(runs: Intervals, taken: Intervals) -> Intervals:
    left: list[tuple[int, int]] = []
    for begin, last in runs:
        first = begin
        for a, b in taken:
            if b < first or a > last:
                continue
            if a > first:
                left.append((first, a - 1))
            first = b + 1
        if first <= last:
            left.append((first, last))
    return tuple(left)


def _not_a_set(text: str) -> CheckpointError:
    return CheckpointError(f"'{text}' is not a set of GTIDs.", "Use another checkpoint.")
