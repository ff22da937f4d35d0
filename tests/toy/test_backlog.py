"""Where the micro-batches of a backlog end."""

from __future__ import annotations

from pathlib import Path

import pytest

from floodmark.capture.retry import RetryPolicy
from floodmark.connectors.load import load_options
from floodmark.connectors.registry import connector_module
from floodmark.spark.stream import captured_log
from floodmark.spark.stream.captured_log import CapturedLog
from tests.toy.conftest import options_of
from tests.toy.notebook.database.notebook import Notebook
from tests.toy.notebook.position import after_transaction


def test_what_waits_is_delivered_while_more_is_captured(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(captured_log, "BACKLOG_WAIT_S", 600.0)
    options = load_options(options_of(notebook, tmp_path / "state"))
    source = connector_module(options.connector, "connector").make_source(options)
    log = CapturedLog(options, source, RetryPolicy(0, 1, 1), "owner")
    log.create()
    start, _ = source.log.create(False)
    with notebook.page() as page:
        page.insert("t", {"id": 100, "v": 1})
    log.start(start)
    try:
        waiting = log.wait_for(start, source.log.end(), None)
        assert waiting > start
        assert log.drain(start, after_transaction(1_000_000), 1000) == waiting
    finally:
        log.stop()
        source.close()
