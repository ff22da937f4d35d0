"""The structured log of the library."""

from __future__ import annotations

import io
import json

import pytest

from floodmark.logger import get_logger


def test_lines_go_to_what_standard_error_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    log = get_logger("a")
    for number in range(2):
        with io.StringIO() as stream:
            monkeypatch.setattr("sys.stderr", stream)
            log.warning("event", number=number)
            assert (
                json.loads(stream.getvalue()).items()
                >= {"event": "event", "number": number, "level": "warning"}.items()
            )
