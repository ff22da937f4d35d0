"""What is said of wrong options, of the notebook itself, and of its log."""

from __future__ import annotations

from pathlib import Path

import pytest

from floodmark.connectors.load import load_batch_options, load_options
from floodmark.connectors.registry import connector_module, connector_names
from floodmark.errors import ConfigError
from tests.toy.conftest import Start, options_of
from tests.toy.notebook.database.notebook import Notebook
from tests.toy.notebook.options import NotebookOptions

OPTIONS = options_of(Notebook(Path("/notebook")), Path("/state"))


def refused(**changes: str | None) -> str:
    given = {**OPTIONS, **{name.replace("_", "."): value for name, value in changes.items()}}
    with pytest.raises(ConfigError) as caught:
        load_options({name: value for name, value in given.items() if value is not None})
    return str(caught.value)


def test_the_options_are_those_of_the_connector() -> None:
    options = load_options(OPTIONS)
    assert isinstance(options, NotebookOptions)
    assert options.path == "/notebook"
    assert connector_names() == ["postgres", "mysql", "mariadb", "oracle", "notebook"]


def test_wrong_options() -> None:
    assert "Option 'notebook.path' is required" in refused(notebook_path=None)
    assert "Did you mean 'notebook.path'?" in refused(notebok_path="/x")
    assert "Did you mean 'table.include.list'?" in refused(tables_include_list="t")
    assert "the connector 'notebook' does not have it, only the connector 'postgres'" in refused(slot_name="s")
    assert "'watermark'" in refused(incremental_snapshot_read_points="watermark")
    assert "Option 'incremental.snapshot.read.points'" in refused(incremental_snapshot_read_points="watermarks")
    assert "Option 'provide.transaction.metadata'" in refused(provide_transaction_metadata="true")


def test_unknown_connectors() -> None:
    text = refused(connector="notebok")
    assert "it must be one of postgres, mysql, mariadb, oracle, notebook" in text
    assert "Did you mean 'notebook'?" in text
    assert "Allowed: postgres, mysql, mariadb, oracle, notebook" in refused(connector=None)


def test_other_connectors_say_whose_option_it_is() -> None:
    postgres = {"connector": "postgres", "topic.prefix": "p", "state.dir": "/state", "notebook.path": "/x"}
    with pytest.raises(ConfigError, match="only the connector 'notebook'"):
        load_options(postgres)


def test_batch_reads_are_refused() -> None:
    with pytest.raises(ConfigError, match="it must be one of postgres"):
        load_batch_options({"connector": "notebook", "notebook.path": "/x"})


def test_a_query_on_nothing_ends_with_an_error(start: Start, tmp_path: Path) -> None:
    query = start(notebook_path=str(tmp_path / "nowhere"), errors_max_retries="1", errors_retry_delay_initial_ms="1")
    with pytest.raises(Exception, match="nowhere"):
        query.step()


def test_checks(start: Start, notebook: Notebook, tmp_path: Path) -> None:
    query = start()
    query.drain()
    check = connector_module("notebook", "checks.server").check_source
    options = load_options(options_of(notebook, tmp_path))
    found = check(options, query.offset)
    assert [(one.check, one.status) for one in found] == [
        ("connection", "ok"),
        ("checkpoint", "ok"),
        ("tables", "ok"),
        ("signal table", "ok"),
    ]
    with notebook.page() as page:
        page.update("t", {"id": 1}, v=1)
    notebook.cut_log()
    (finding,) = [one for one in check(options, query.offset) if one.status == "error"]
    assert "log begins at" in finding.finding
    nowhere = load_options({**options_of(notebook, tmp_path), "notebook.path": str(tmp_path / "nowhere")})
    (finding,) = check(nowhere, None)
    assert "there is no notebook in" in finding.finding


def test_log_status(start: Start, notebook: Notebook, tmp_path: Path) -> None:
    query = start()
    query.drain()
    status = connector_module("notebook", "log_status").log_status
    options = load_options(options_of(notebook, tmp_path))
    found = status(options, query.offset["log"])
    assert (found.lag_bytes, found.end, found.problem) == (0, query.offset["log"], "")
    with notebook.page() as page:
        page.update("t", {"id": 1}, v=1)
    assert status(options, query.offset["log"]).lag_bytes == len(notebook.log.path.read_bytes().splitlines()[-1]) + 1
    assert status(options, "").lag_bytes is None
    notebook.cut_log()
    assert "log begins at" in status(options, query.offset["log"]).problem
