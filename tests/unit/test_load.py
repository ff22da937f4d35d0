"""What ``load`` says of mistakes, before anything is asked of the source."""

from __future__ import annotations

import io
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.util import handle_worker_exception

from floodmark.cli.checks.environment import check_pyspark
from floodmark.connectors.load import as_texts
from floodmark.errors import ConfigError, FloodmarkError, SlotBusyError
from floodmark.spark.failures import HIDE_TRACEBACK, floodmark_error, plainly
from floodmark.spark.source import FloodmarkDataSource
from floodmark.spark.versions import SUPPORTED, require_push_down, require_spark
from tests.support.options import REQUIRED, REQUIRED_MYSQL


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a test sets is gone after it, as with one of Spark's processes."""
    monkeypatch.setenv(HIDE_TRACEBACK, "")
    monkeypatch.delenv(HIDE_TRACEBACK)


def columns(options: dict[str, str]) -> list[str]:
    given: Any = CaseInsensitiveDict(options)
    return FloodmarkDataSource(given).schema().fieldNames()


def refused(options: dict[str, str]) -> FloodmarkError:
    with pytest.raises(FloodmarkError) as caught:
        columns(options)
    assert "\n" not in str(caught.value)
    return caught.value


def reported(error: BaseException) -> str:
    """Return what a process of Spark's reports of an error."""
    written = io.BytesIO()
    handle_worker_exception(error, written)
    return written.getvalue()[8:].decode()


def test_nothing_is_asked_of_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("load opened a connection")

    monkeypatch.setattr("socket.socket.connect", refuse)
    for options in (REQUIRED, REQUIRED_MYSQL, {**REQUIRED_MYSQL, "connector": "mariadb"}):
        assert columns(options)[:4] == ["topic", "key", "value", "headers"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"slot.nam": "x"}, "Unknown option 'slot.nam'. Did you mean 'slot.name'?"),
        ({"state.dir": __file__}, "which is a file. Give a directory."),
        ({"state.dir": "ftp://host/dir"}, "on the filesystem 'ftp', which PyArrow does not open"),
        ({"snapshot.mode": "custom", "snapshot.mode.custom.name": "nobody"}, "nobody"),
        ({"converters": "c", "c.type": "nobody"}, "nobody"),
        ({"notification.enabled.channels": "nowhere:f"}, "'nowhere:f', which cannot be imported"),
    ],
)
def test_mistakes_are_found_by_load(changes: dict[str, str], words: str) -> None:
    assert words in str(refused({**REQUIRED, **changes}))
    assert os.environ[HIDE_TRACEBACK] == "1"


@pytest.mark.parametrize("state_dir", ["s3://bucket/dir", "hdfs://host/dir", "file:///tmp", "/not/there/yet"])
def test_directories_that_are_not_looked_at(state_dir: str) -> None:
    assert columns({**REQUIRED, "state.dir": state_dir})


@pytest.mark.parametrize("host", ["db", "10.0.0.5", "::1", "fe80::1%eth0", "db.example.com", "/var/run/postgresql"])
def test_hosts(host: str) -> None:
    assert columns({**REQUIRED, "database.hostname": host})


def test_credentials_in_a_host_are_not_shown() -> None:
    for host in ("postgres://cdc:its-secret@db/shop", "cdc:its-secret@db"):
        message = str(refused({**REQUIRED, "database.hostname": host}))
        assert "database.hostname" in message
        assert "its-secret" not in message


def test_values_of_programs_are_what_spark_writes_of_them() -> None:
    values: dict[str, Any] = {"database.port": 5433, "tombstones.on.delete": False, "topic.prefix": "p"}
    assert as_texts(values) == {"database.port": "5433", "tombstones.on.delete": "false", "topic.prefix": "p"}


@pytest.mark.parametrize(("options", "extra"), [(REQUIRED, "postgres"), (REQUIRED_MYSQL, "mysql")])
def test_a_missing_driver(options: dict[str, str], extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("floodmark.connectors.registry.find_spec", lambda _: None)
    error = refused(options)
    assert isinstance(error, ConfigError)
    assert error.cure == f"Install it with: pip install 'floodmark[{extra}]'"


def test_errors_of_ours_are_reported_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(error: Exception) -> str:
        try:
            with plainly():
                raise error
        except Exception as exc:
            return reported(exc)

    assert "Traceback" in fail(RuntimeError("a defect"))
    busy = fail(SlotBusyError("Slot 'a' is in use.", "Stop the other query."))
    assert busy == "floodmark.errors.SlotBusyError: Slot 'a' is in use. Stop the other query.\n"
    monkeypatch.setenv(HIDE_TRACEBACK, "")
    assert "Traceback" in fail(SlotBusyError("Slot 'a' is in use."))


def test_an_error_without_a_traceback_is_found(tmp_path: Path) -> None:
    text = (
        "[PYTHON_DATA_SOURCE_ERROR] Failed to create Python data source instance: floodmark.errors.ConfigError: "
        "Unknown option 'a'. Did you mean: 'b'?\n SQLSTATE: 38000"
    )
    found = floodmark_error(AnalysisException(text))
    assert type(found) is ConfigError
    assert str(found) == "Unknown option 'a'. Did you mean: 'b'?"


@pytest.mark.parametrize("version", ["4.0.5", "4.1.4", "4.2.0", "4.2.1", "4.3.0", "4.3.1.dev0"])
def test_versions_of_spark(version: str) -> None:
    require_spark(version)


@pytest.mark.parametrize("version", ["3.5.6", "4.4.0", "5.2.0"])
def test_other_versions_of_spark_are_refused(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=rf"This is Spark {version}; Floodmark works with 4.0 to 4.3\. .*pyspark==4"):
        require_spark(version)
    monkeypatch.setattr("floodmark.cli.checks.environment.version", lambda _: version)
    found = check_pyspark()
    assert (found.status, found.finding) == ("error", f"This is Spark {version}; Floodmark works with 4.0 to 4.3.")


def test_filters_are_not_pushed_down_before_4_1() -> None:
    require_push_down("4.1.4")
    with pytest.raises(ConfigError, match=r"'batch\.filter\.pushdown' is on, but Spark 4\.0\.5 doesn't .*Spark 4\.1"):
        require_push_down("4.0.5")


def test_load_looks_at_the_version_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("floodmark.spark.source.require_spark", lambda: require_spark("3.5.6"))
    assert "This is Spark 3.5.6" in str(refused({}))


def test_the_package_asks_for_these_versions() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    (first, last), end = (SUPPORTED[0], SUPPORTED[-1]), SUPPORTED[-1][1] + 1
    assert f"pyspark>={first[0]}.{first[1]}.5,<{last[0]}.{end}" in project["project"]["dependencies"]
