"""Where records go that can't be decoded: ``<state.dir>/<owner>/dead-letters``, one JSON object a line."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence

from floodmark.capture.files import open_filesystem, state_dir_error, write_durably
from floodmark.capture.store import DEAD_LETTERS
from floodmark.connectors.contract.base import DeadLetter


def keep_dead_letters(uri: str, owner: str, name: str, letters: Sequence[DeadLetter]) -> None:
    """Write records.

    Args:
        uri: the option ``state.dir``.
        owner: the name of the source's directory below it.
        name: of the file; a task that runs again writes the same one.
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
        # The sink gets nothing of these records, so this is all that is left of them.
        write_durably(filesystem, f"{directory}/{name}.jsonl", [("\n".join(lines) + "\n").encode()])
    except OSError as exc:
        raise state_dir_error(
            uri,
            "where a task cannot write",
            exc,
            "It must be a directory that the driver and all executors share and may write, with some space left.",
        ) from None
