"""Names and texts become SQL in one way only, and errors of Spark say what they mean for a table."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException

from floodmark.errors import ConfigError, TargetUnfitError
from floodmark.spark.delta.failures import is_conflict, target_error
from floodmark.spark.targets.names import catalog_name, literal, quoted, spark_folder


def test_names_and_texts() -> None:
    assert quoted("a`; DROP TABLE t; --") == "`a``; DROP TABLE t; --`"
    assert literal("it's a \\ ' text") == "'it\\'s a \\\\ \\' text'"


@pytest.mark.parametrize(
    ("location", "folder"),
    [
        ("/lake/my shop", "file:///lake/my shop/public.orders"),
        ("file:///lake/my%20shop", "file:///lake/my shop/public.orders"),
        ("lake", f"file://{Path.cwd()}/lake/public.orders"),
        ("s3a://bucket/lake/", "s3a://bucket/lake/public.orders"),
        ("s3a://bucket/my%20lake", "s3a://bucket/my lake/public.orders"),
    ],
)
def test_folders_as_spark_names_them(location: str, folder: str) -> None:
    assert spark_folder(location, "public.orders") == folder


def test_a_path_that_stands_for_others() -> None:
    with pytest.raises(ConfigError, match=r"has the character '\*', with which Spark reads other folders"):
        spark_folder("/lake/*", "public.orders")


@pytest.mark.parametrize(
    ("schema", "table", "name"),
    [
        ("shop", "public.orders", "`shop`.`public_orders`"),
        ("main.shop", "public.Odd `name`", "`main`.`shop`.`public_Odd_20_60name_60`"),
    ],
)
def test_names_in_a_catalogue(schema: str, table: str, name: str) -> None:
    assert catalog_name(schema, table) == name


def test_conflicts_are_told_from_other_errors() -> None:
    assert is_conflict(
        AnalysisException("[DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT] Transaction conflict detected.")
    )
    assert is_conflict(AnalysisException("An error occurred.\n: io.delta.exceptions: [DELTA_METADATA_CHANGED] It was."))
    assert not is_conflict(AnalysisException("[DELTA_PATH_DOES_NOT_EXIST] /lake doesn't exist"))


def test_what_keeps_rows_out_of_a_table() -> None:
    text = "Job aborted: [DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint c (v > 1) violated:\n - v : secret"
    error = target_error("db.t", AnalysisException(text))
    assert isinstance(error, TargetUnfitError)
    assert "CHECK constraint c" in str(error)
    assert "secret" not in str(error)


def test_a_disk_that_is_full() -> None:
    caused = AnalysisException("[TASK_WRITE_FAILED] Task failed while writing rows to file:/lake/db.t.")
    caused._cause = OSError("java.io.IOException: No space left on device")  # type: ignore[attr-defined]
    full = target_error("db.t", caused)
    assert "No space left on device ([TASK_WRITE_FAILED] Task failed while writing rows to file:/lake" in str(full)
    assert full.cure.startswith("Free some space")
    row = "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint c violated:\n - v : No space left on device"
    assert isinstance(target_error("db.t", AnalysisException(row)), TargetUnfitError)


def test_what_is_said_of_another_error() -> None:
    other = target_error("db.t", AnalysisException("[SCHEMA_NOT_FOUND] The schema can't be found."))
    assert not isinstance(other, TargetUnfitError)
    assert str(other).startswith(
        "Spark can't write the Delta table 'db.t': [SCHEMA_NOT_FOUND] The schema can't be found."
    )
