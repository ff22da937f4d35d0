"""What is done with the folders in which changes of Iceberg tables are staged, and with errors of the JVM."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from obstore.store import LocalStore
from pyspark.errors import AnalysisException

from floodmark.errors import TargetError, TargetUnfitError
from floodmark.sinks.iceberg.staging import prepare
from floodmark.sinks.iceberg.writer import _below
from floodmark.spark.iceberg.failures import is_conflict, java_names, reason_of, target_error

OLD = "part-00000000-0000-0000-0000-000000000001.parquet"
YOUNG = "part-00000000-0000-0000-0000-000000000002.parquet"
PACKAGE = "org.apache.iceberg.exceptions."


def test_old_files_are_removed(tmp_path: Path) -> None:
    (tmp_path / "_floodmark").mkdir()
    for name in (OLD, YOUNG, "mine.parquet", "_floodmark/set_aside.json"):
        (tmp_path / name).write_text("x")
    for name in (OLD, "mine.parquet", "_floodmark/set_aside.json"):
        os.utime(tmp_path / name, times=(time.time() - 3 * 86400,) * 2)
    prepare(LocalStore(str(tmp_path)), "db.t")
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {YOUNG, "mine.parquet", "_floodmark/set_aside.json"}


def test_a_delta_tables_folder(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / "0.json").write_text("{}")
    (tmp_path / OLD).write_text("x")
    os.utime(tmp_path / OLD, times=(0, 0))
    with pytest.raises(TargetError, match=r"The mirror's path has a Delta table for 'db\.t'"):
        prepare(LocalStore(str(tmp_path)), "db.t")
    assert (tmp_path / OLD).exists()


def java(*errors: tuple[str, str]) -> Any:
    """Return an error of the JVM, each of which is the cause of the one before."""
    cause = None
    for name, message in reversed(errors):
        kind = SimpleNamespace(getName=lambda name=name: name)
        cause = SimpleNamespace(
            getClass=lambda kind=kind: kind,
            getMessage=lambda message=message: message,
            getCause=lambda cause=cause: cause,
        )
    return cause


def raised(*errors: tuple[str, str], text: str = "An error occurred") -> Exception:
    error = RuntimeError(text)
    error.java_exception = java(*errors)  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize(
    ("error", "conflict"),
    [
        (raised((f"{PACKAGE}CommitFailedException", "x")), True),
        (raised(("java.lang.RuntimeException", "x"), (f"{PACKAGE}CommitStateUnknownException", "y")), True),
        (raised((f"{PACKAGE}NotAuthorizedException", "x")), False),
        (AnalysisException("[TABLE_OR_VIEW_ALREADY_EXISTS] x"), True),
        (AnalysisException("[INSUFFICIENT_PERMISSIONS] x"), False),
    ],
)
def test_conflicts(error: Exception, conflict: bool) -> None:
    assert is_conflict(error) == conflict


def test_reasons() -> None:
    error = raised(("java.lang.RuntimeException", "outer"), ("java.net.ConnectException", "Connection refused\nmore."))
    assert java_names(error) == ["java.lang.RuntimeException", "java.net.ConnectException"]
    assert reason_of(error) == "Connection refused"
    found = target_error("db.t", error)
    assert str(found).startswith("Spark can't write the Iceberg table 'db.t': Connection refused. See to it that Spark")
    assert not isinstance(found, TargetUnfitError)
    unfit = target_error("db.t", AnalysisException("[NOT_NULL_ASSERT_VIOLATION] NULL value appeared.\nrow 1"))
    assert isinstance(unfit, TargetUnfitError)
    assert "row 1" not in str(unfit)


def test_tiers_of_small_files() -> None:
    assert [_below(number, 10) for number in (10, 20, 100, 200, 1000)] == [1 << 23, 1 << 23, 1 << 26, 1 << 26, None]
    assert _below(7, 1) is None
