"""Checksums of the small files in ``state.dir``: their last line, over their name and their content.

They detect a file with changed bits, one that is cut off or empty, and one that lies under another file's name. Source:
CRC-32 of ISO 3309, as zlib computes it; it detects every change of up to 32 bits in a row.
"""

from __future__ import annotations

import zlib

from floodmark.errors import DamagedFileError

_MARK = b"crc32 "
_BYTES = len(_MARK) + 9


def sealed(name: str, text: bytes) -> bytes:
    """Return a file's content with its checksum.

    Args:
        name: the file's name; it must be read under the same one.
        text: its content, whole lines.
    """
    return text + _line(name, text)


def opened(name: str, content: bytes) -> bytes:
    """Return the content that was passed to ``sealed``, after verifying its checksum.

    Raises:
        DamagedFileError: the content is not what was written under this name.
    """
    text = content[:-_BYTES]
    if content[-_BYTES:] != _line(name, text):
        raise DamagedFileError(f"'{name}' is damaged: its checksum is missing or wrong.")
    return text


def is_sealed(content: bytes) -> bool:
    """Return whether a file's content ends with a checksum, right or wrong."""
    return content[-_BYTES:].startswith(_MARK)


def _line(name: str, text: bytes) -> bytes:
    return _MARK + b"%08x\n" % zlib.crc32(text, zlib.crc32(name.encode()))
