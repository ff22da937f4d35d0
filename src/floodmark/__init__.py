"""Change data capture for Apache Spark: Debezium's events as a streaming DataFrame."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from floodmark._version import __version__
from floodmark.connectors.contract.findings import Finding
from floodmark.errors import (
    CaptureError,
    CheckpointError,
    ComparisonError,
    ConditionError,
    ConfigError,
    ConnectError,
    DamagedFileError,
    DdlError,
    DecodeError,
    FloodmarkError,
    ForkedLogError,
    LockTimeoutError,
    LogGoneError,
    LoginError,
    NoTableLeftError,
    NotReadyError,
    OffsetError,
    PrivilegeError,
    ReadPointGoneError,
    RegistryError,
    SchemaChangeError,
    SchemaHistoryError,
    SignalError,
    SlotBusyError,
    SourceStateError,
    StateDirError,
    StatementTimeoutError,
    TargetBusyError,
    TargetChangedError,
    TargetDamagedError,
    TargetError,
    TargetUnfitError,
    UnreadableLogError,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from floodmark.extensions.converter import Conversion, Converter, SourceColumn
    from floodmark.extensions.snapshotter import SnapshotLock, SnapshotQuery, Snapshotter
    from floodmark.rebuilding.rebuilder import Rebuilt, rebuild
    from floodmark.spark.merging import changed_tables, merged_rows, table_rows
    from floodmark.spark.ordering import order_by_key
    from floodmark.spark.pipelines.program import Pipeline
    from floodmark.spark.sinks.kafka_writer import kafka
    from floodmark.spark.sinks.mirrors import jdbc, mirror
    from floodmark.verification.results import KeyDifference, TableResult, Verification
    from floodmark.verification.verifier import verify

__all__ = [
    "CaptureError",
    "CheckpointError",
    "ComparisonError",
    "ConditionError",
    "ConfigError",
    "ConnectError",
    "Conversion",
    "Converter",
    "DamagedFileError",
    "DdlError",
    "DecodeError",
    "Finding",
    "FloodmarkError",
    "ForkedLogError",
    "KeyDifference",
    "LockTimeoutError",
    "LogGoneError",
    "LoginError",
    "NoTableLeftError",
    "NotReadyError",
    "OffsetError",
    "Pipeline",
    "PrivilegeError",
    "ReadPointGoneError",
    "Rebuilt",
    "RegistryError",
    "SchemaChangeError",
    "SchemaHistoryError",
    "SignalError",
    "SlotBusyError",
    "SnapshotLock",
    "SnapshotQuery",
    "Snapshotter",
    "SourceColumn",
    "SourceStateError",
    "StateDirError",
    "StatementTimeoutError",
    "TableResult",
    "TargetBusyError",
    "TargetChangedError",
    "TargetDamagedError",
    "TargetError",
    "TargetUnfitError",
    "UnreadableLogError",
    "Verification",
    "__version__",
    "changed_tables",
    "check",
    "jdbc",
    "kafka",
    "merged_rows",
    "mirror",
    "order_by_key",
    "rebuild",
    "register",
    "signal",
    "table_rows",
    "verify",
]

_IMPORTED_WHEN_USED = {
    "KeyDifference": "floodmark.verification.results",
    "Pipeline": "floodmark.spark.pipelines.program",
    "Rebuilt": "floodmark.rebuilding.rebuilder",
    "TableResult": "floodmark.verification.results",
    "Verification": "floodmark.verification.results",
    "verify": "floodmark.verification.verifier",
    "Conversion": "floodmark.extensions.converter",
    "Converter": "floodmark.extensions.converter",
    "SnapshotLock": "floodmark.extensions.snapshotter",
    "SnapshotQuery": "floodmark.extensions.snapshotter",
    "Snapshotter": "floodmark.extensions.snapshotter",
    "SourceColumn": "floodmark.extensions.converter",
    "changed_tables": "floodmark.spark.merging",
    "jdbc": "floodmark.spark.sinks.mirrors",
    "kafka": "floodmark.spark.sinks.kafka_writer",
    "merged_rows": "floodmark.spark.merging",
    "mirror": "floodmark.spark.sinks.mirrors",
    "order_by_key": "floodmark.spark.ordering",
    "rebuild": "floodmark.rebuilding.rebuilder",
    "table_rows": "floodmark.spark.merging",
}
"""Names whose modules need PyArrow or PySpark, which each process that only looks the format up would import too."""


def __getattr__(name: str) -> Any:
    if name in _IMPORTED_WHEN_USED:
        return getattr(import_module(_IMPORTED_WHEN_USED[name]), name)
    raise AttributeError(f"module 'floodmark' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def register(spark: SparkSession) -> None:
    """Register the data source with a session; needed only where Spark doesn't find it by itself."""
    from floodmark.spark.source import FloodmarkDataSource

    spark.dataSource.register(FloodmarkDataSource)


def check(options: Mapping[str, str], checkpoint: str | None = None) -> list[Finding]:
    """Check for problems that would make a query fail later, as ``floodmark check`` does for a pipeline file.

    The check connects to the source and only reads from it. ``state.dir`` and the checkpoint's directory are
    created if they are missing.

    Args:
        options: the source's options, as for ``spark.readStream``.
        checkpoint: the query's checkpoint directory, to check that the query can continue from it.

    Returns:
        The findings. Those whose ``status`` is ``error`` prevent the query from working; each has a ``fix``. Wrong
        options and a source that can't be reached are findings too; nothing is raised for them.
    """
    from pyspark.sql import SparkSession

    from floodmark.cli.check import check_options
    from floodmark.spark.pipelines.model import DEFAULT_MASTER

    session = SparkSession.getActiveSession()
    master = DEFAULT_MASTER if session is None else session.conf.get("spark.master", DEFAULT_MASTER)
    return check_options(options, checkpoint, str(master))


def signal(
    options: Mapping[str, str],
    type: str,  # noqa: A002 - Debezium's name
    data: Mapping[str, Any] | str | None = None,
    id: str | None = None,  # noqa: A002 - Debezium's name
) -> str:
    """Send a signal to the query that captures a source; a query that isn't running reads it once it is started.

    Args:
        options: the source's options, as for ``spark.readStream``.
        type: ``execute-snapshot``, ``stop-snapshot``, ``pause-snapshot``, ``resume-snapshot`` or ``log``.
        data: the type's fields, such as ``{"data-collections": ["public.orders"]}``.
        id: names the signal in notifications; a new one if not given.

    Returns:
        The signal's id.

    Raises:
        ConfigError: an option is wrong.
        SignalError: the type is not known, or the data is not what it needs.
        StateDirError: ``state.dir`` cannot be written.
    """
    from floodmark.connectors.load import load_options
    from floodmark.signals.files import new_signal, send

    source = load_options(options)
    made = new_signal(type, data, id)
    send(source, source.owner, made)
    return made.id
