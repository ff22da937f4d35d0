"""What a checkpoint stores about the log before its position, so that the log is recognized when the query goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from floodmark.connectors.postgres.position import format_lsn, parse_lsn
from floodmark.json_data import Json, JsonObject, damaged_checkpoint, stored_object


@dataclass(frozen=True)
class Commit:
    """A transaction that the log holds.

    Attributes:
        lsn: where its commit record begins.
        micros: its time, microseconds since the Unix epoch.
        upto: up to here, the log that the source receives holds nothing after it.
    """

    lsn: int
    micros: int
    upto: int = 0


@dataclass(frozen=True)
class LastEnd:
    """The end of the last transaction, or message outside of transactions, before a position.

    Attributes:
        position: the position.
        lsn: the end; None: nothing was received before.
        micros: when the last transaction was committed, microseconds since the Unix epoch; None: not known.
    """

    position: str
    lsn: int | None
    micros: int | None


@dataclass(frozen=True)
class Piece:
    """Bytes of the log.

    Attributes:
        lsn: where they end.
        size: how many.
        checksum: CRC-32.
    """

    lsn: int
    size: int
    checksum: int


@dataclass(frozen=True)
class LogBookmark:
    """What identifies the log before a position.

    Attributes:
        database: OID of the database; 0 if it isn't known yet.
        timeline: the timeline at the position; 0 if it isn't known yet.
        began: the LSN where the timeline began.
        commit: the last commit before the position; ``upto`` isn't stored.
        piece: bytes of the log before the position.
        end: LSN and time of the last end before the position, which the next event names; None if it isn't known.
    """

    database: int
    timeline: int
    began: int
    commit: Commit | None
    piece: Piece | None
    end: tuple[int, int | None] | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the bookmark as JSON data."""
        commit, piece = self.commit, self.piece
        return {
            "database": self.database,
            "timeline": self.timeline,
            "began": format_lsn(self.began),
            "commit": [format_lsn(commit.lsn), commit.micros] if commit is not None else None,
            "bytes": [format_lsn(piece.lsn), piece.size, piece.checksum] if piece is not None else None,
            "end": [format_lsn(self.end[0]), self.end[1]] if self.end is not None else None,
        }

    @classmethod
    def from_json(cls, data: Json) -> Self | None:
        """Return the bookmark that ``to_json`` described; None for that of an earlier version, which had no timeline.

        Raises:
            CheckpointError: it described something else.
        """
        stored = stored_object(data, "The bookmark of the log")
        if "timeline" not in stored:
            return None
        return cls(
            stored.integer("database"),
            stored.integer("timeline"),
            _lsn(stored.text("began")),
            _commit(stored),
            _piece(stored),
            _end(stored),
        )


def _commit(stored: JsonObject) -> Commit | None:
    match stored.value("commit"):
        case None:
            return None
        case [str(lsn), int(micros)]:
            return Commit(_lsn(lsn), micros)
    raise stored.wrong("commit", "an LSN and a time")


def _piece(stored: JsonObject) -> Piece | None:
    match stored.value("bytes"):
        case None:
            return None
        case [str(lsn), int(size), int(checksum)]:
            return Piece(_lsn(lsn), size, checksum)
    raise stored.wrong("bytes", "an LSN, a size and a checksum")


def _end(stored: JsonObject) -> tuple[int, int | None] | None:
    # Earlier versions didn't store it.
    match stored.value("end") if "end" in stored else None:
        case None:
            return None
        case [str(lsn), (int() | None) as micros]:
            return _lsn(lsn), micros
    raise stored.wrong("end", "an LSN and a time")


def _lsn(text: str) -> int:
    try:
        return parse_lsn(text)
    except ValueError:
        raise damaged_checkpoint(f"'{text}' is not an LSN") from None
