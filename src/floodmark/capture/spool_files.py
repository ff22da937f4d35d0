"""Reads and writes the files of the transaction spool in ``<state.dir>/<owner>/spool``.

A file of records (``.records``) holds pieces of transactions: the raw records, then where each starts (little-endian
uint32). An index (``.index``) is JSON with a checksum: all undecided transactions at one position, each with its
pieces, which have CRC32s too. Files are written once, and synced before anything refers to them.

Connectors that need none of this after a restart write files of their own form there, which aren't synced.
"""

from __future__ import annotations

import contextlib
import json
import uuid
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import fs

from floodmark.capture.files import open_filesystem, write_atomically, write_durably
from floodmark.capture.mapped_files import MappedFile, map_file
from floodmark.capture.seals import opened, sealed
from floodmark.capture.store import SPOOL
from floodmark.errors import DamagedFileError, StateDirError
from floodmark.json_data import Json, JsonObject
from floodmark.logger import get_logger

log = get_logger(__name__)

WAY_OUT = "Restart the query: the log is read again from where the oldest of them begins."
_RECORDS, _INDEX = ".records", ".index"

Content = tuple[NDArray[np.uint8], NDArray[np.uint32], int, int]
"""Payload, starts and form of a piece, and how many bytes larger it is when it is decompressed."""


@dataclass(frozen=True, slots=True)
class StoredPiece:
    """Where a piece of a transaction is.

    Attributes:
        file: name of the file.
        offset: where the piece begins in the file.
        size: bytes of its records.
        records: how many there are.
        checksum: CRC32 of the records and their starts.
        form: ``spool.Piece.form``.
        inflated: ``spool.Piece.inflated``.
    """

    file: str
    offset: int
    size: int
    records: int
    checksum: int
    form: int
    inflated: int


@dataclass(frozen=True)
class IndexEntry:
    """An undecided transaction in an index; see ``spool.Spooled``."""

    key: bytes
    begin: str
    token: str
    label: str
    pieces: tuple[StoredPiece, ...]


@dataclass(frozen=True)
class CachedFile:
    """A file of a connector's own form.

    Attributes:
        name: its name.
        size: its bytes.
        checksum: their CRC32.
    """

    name: str
    size: int
    checksum: int


class SpoolFiles:
    """The files of one source's spool.

    Args:
        uri: the option ``state.dir``.
        owner: name of the source's directory below it.

    Attributes:
        held_bytes: size of all files.
    """

    def __init__(self, uri: str, owner: str) -> None:
        self._fs, root = open_filesystem(uri)
        self._uri = uri
        self._path = f"{root.rstrip('/')}/{owner}/{SPOOL}"
        self._sizes: dict[str, int] | None = None
        self.held_bytes = 0

    def write(self, contents: Sequence[Content]) -> list[StoredPiece]:
        """Write pieces of transactions into one file.

        Raises:
            StateDirError: the directory cannot be written.
        """
        name = uuid.uuid4().hex + _RECORDS
        parts: list[bytes | memoryview] = []
        stored = []
        offset = 0
        for payload, starts, form, inflated in contents:
            body = np.ascontiguousarray(payload).data
            index = np.ascontiguousarray(starts, dtype="<u4").tobytes()
            parts += [body, index]
            checksum = zlib.crc32(index, zlib.crc32(body))
            stored.append(StoredPiece(name, offset, len(body), len(starts), checksum, form, inflated))
            offset += len(body) + len(index)
        self._write(name, parts, offset)
        return stored

    def read(self, piece: StoredPiece) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
        """Return the records of a piece, and where each starts.

        Raises:
            StateDirError: the file is missing or damaged.
        """
        length = piece.size + 4 * piece.records
        try:
            with self._fs.open_input_file(f"{self._path}/{piece.file}") as file:
                data = bytes(file.read_at(length, piece.offset))
        except OSError as exc:
            raise self._lost(piece.file, str(exc)) from None
        if len(data) != length or zlib.crc32(data) != piece.checksum:
            raise self._lost(piece.file, "its checksum is wrong")
        raw = np.frombuffer(data, np.uint8)
        return raw[: piece.size], np.frombuffer(data, "<u4", offset=piece.size)

    def write_cached(self, content: pa.Buffer, suffix: str) -> CachedFile:
        """Write a file that isn't needed after a power cut.

        Raises:
            StateDirError: the directory cannot be written.
        """
        name = uuid.uuid4().hex + suffix
        self._write(name, [memoryview(content)], content.size, durable=False)
        return CachedFile(name, content.size, zlib.crc32(content))

    def map(self, file: CachedFile, verify: bool) -> MappedFile:
        """Return the content of a file; if the filesystem is local, only what is used of it is read.

        Args:
            file: which one.
            verify: whether to verify the checksum, for which all of it is read.

        Raises:
            StateDirError: the file is missing or damaged.
        """
        try:
            found = map_file(self._fs, f"{self._path}/{file.name}")
        except OSError as exc:
            raise self._lost(file.name, str(exc)) from None
        if found.content.size != file.size or (verify and zlib.crc32(found.content) != file.checksum):
            raise self._lost(file.name, "its checksum is wrong")
        return found

    def write_index(self, entries: Sequence[IndexEntry]) -> str:
        """Write an index and return its name.

        Raises:
            StateDirError: the directory cannot be written.
        """
        files = sorted({piece.file for one in entries for piece in one.pieces})
        tokens = list(dict.fromkeys(one.token for one in entries))
        number = {file: n for n, file in enumerate(files)}
        token = {text: n for n, text in enumerate(tokens)}
        listed = [
            [
                one.key.hex(),
                one.begin,
                token[one.token],
                one.label,
                [[number[p.file], p.offset, p.size, p.records, p.checksum, p.form, p.inflated] for p in one.pieces],
            ]
            for one in entries
        ]
        text = json.dumps({"files": files, "tokens": tokens, "transactions": listed}, separators=(",", ":")) + "\n"
        name = uuid.uuid4().hex + _INDEX
        content = sealed(name, text.encode())
        self._write(name, [content], len(content))
        return name

    def read_index(self, name: str) -> list[IndexEntry] | None:
        """Return the entries of an index; None if it, or a file that it names, is missing or damaged."""
        try:
            with self._fs.open_input_file(f"{self._path}/{name}") as file:
                data = bytes(file.read())
            entries = _entries(name, opened(name, data))
            for one in entries:
                for piece in one.pieces:
                    self.read(piece)
        except (OSError, DamagedFileError, StateDirError) as exc:
            log.warning("spool_cannot_be_used", index=name, error=str(exc), next="the log is read again")
            return None
        return entries

    def keep_only(self, names: set[str]) -> None:
        """Remove all other files; what can't be removed now is tried again the next time."""
        known = self._known()
        for name in [name for name in known if name not in names]:
            try:
                with contextlib.suppress(FileNotFoundError):
                    self._fs.delete_file(f"{self._path}/{name}")
            except OSError:
                continue
            self.held_bytes -= known.pop(name)

    def _known(self) -> dict[str, int]:
        """Return the sizes of the files by their names."""
        if self._sizes is None:
            found = self._fs.get_file_info(fs.FileSelector(self._path, allow_not_found=True))
            self._sizes = {info.base_name: info.size for info in found if info.type == fs.FileType.File}
            self.held_bytes = sum(self._sizes.values())
        return self._sizes

    def _write(self, name: str, parts: Sequence[bytes | memoryview], size: int, durable: bool = True) -> None:
        write = write_durably if durable else write_atomically
        try:
            write(self._fs, f"{self._path}/{name}", parts)
        except OSError as exc:
            raise StateDirError(
                f"Option 'state.dir' is '{self._uri}', where undecided transactions cannot be written: {exc}.",
                "Make the directory writable for the user that runs the query, or free some space.",
            ) from None
        known = self._known()
        self.held_bytes += size - known.get(name, 0)
        known[name] = size

    def _lost(self, name: str, why: str) -> StateDirError:
        return StateDirError(
            f"The file '{self._path}/{name}' with the records of undecided transactions cannot be used: {why}.",
            WAY_OUT,
        )


def _entries(name: str, text: bytes) -> list[IndexEntry]:
    """Return the entries of an index.

    Args:
        name: the index's name.
        text: what ``write_index`` wrote, without its checksum.

    Raises:
        DamagedFileError: the text is something else.
    """

    def damaged(problem: str) -> DamagedFileError:
        return DamagedFileError(f"{problem}.", WAY_OUT)

    what = f"The index '{name}'"
    try:
        content: Json = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise damaged(f"{what} is not JSON ({exc})") from None
    index = JsonObject(content, what, damaged)
    files, tokens = index.texts("files"), index.texts("tokens")
    try:
        return [_entry(item, files, tokens) for item in index.items("transactions")]
    except (ValueError, LookupError):
        raise index.wrong("transactions", "a list of transactions") from None


def _entry(item: Json, files: Sequence[str], tokens: Sequence[str]) -> IndexEntry:
    match item:
        case [str(key), str(begin), int(token), str(label), list(pieces)]:
            stored = tuple(_piece(piece, files) for piece in pieces)
            return IndexEntry(bytes.fromhex(key), begin, tokens[token], label, stored)
    raise ValueError


def _piece(item: Json, files: Sequence[str]) -> StoredPiece:
    match item:
        case [int(file), int(offset), int(size), int(records), int(checksum), int(form), int(inflated)]:
            return StoredPiece(files[file], offset, size, records, checksum, form, inflated)
    raise ValueError
