"""Writes records that can't be decoded to ``<state.dir>/<owner>/dead-letters``, as one JSON object per line."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence

from floodmark.capture.files import open_filesystem, state_dir_error, write_durably
from floodmark.capture.store import DEAD_LETTERS
from floodmark.connectors.contract.decoding import DeadLetter


def keep_dead_letters(uri: str, owner: str, name: str, letters: Sequence[DeadLetter]) -> None:
    """Write records that can't be decoded to a file.

    Args:
        uri: the option ``state.dir``.
        owner: the name of the source's directory below it.
        name: the file's name without its extension; a task that runs again writes the same file.
        letters: the records.

    Raises:
        StateDirError: the directory cannot be written.
    """
    filesystem, root = open_filesystem(uri)
    directory = f"{root.rstrip('/')}/{owner}/{DEAD_LETTERS}"
    lines = [
        json.dumps(
            {
                "position": one.position,
                "table": one.table,
                "operation": one.operation,
                "error": one.error,
                "record": base64.b64encode(one.record).decode(),
            }
        )
        for one in letters
    ]
    try:
        # The sink never receives these records, so this is their only copy.
        write_durably(filesystem, f"{directory}/{name}.jsonl", [("\n".join(lines) + "\n").encode()])
    except OSError as exc:
        raise state_dir_error(
            uri,
            "where a task cannot write",
            exc,
            "It must be a directory that the driver and all executors share and may write, with some space left.",
        ) from None
