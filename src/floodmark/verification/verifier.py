"""Compares tables of a source with their targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from obstore.exceptions import BaseError

from floodmark.config.patterns import Pattern
from floodmark.connectors.contract.captured_table import CapturedTable
from floodmark.connectors.load import load_options
from floodmark.errors import ConfigError, FloodmarkError, describe
from floodmark.logger import get_logger
from floodmark.sinks.delta.verifiable import DeltaTarget
from floodmark.sinks.verifiable import VerifiableTarget
from floodmark.verification.progress import QueryProgress, reads
from floodmark.verification.repair import Repair, Send
from floodmark.verification.results import TableResult, Verification
from floodmark.verification.source import SourceTables
from floodmark.verification.table import Settings, TableComparison
from floodmark.verification.tasks import Runner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = get_logger(__name__)

REPAIR_PATIENCE = 2
"""How much longer a repair is waited for than the target's progress."""
LIMIT, WAIT_S = 100, 60.0
MakeTarget = Callable[[str], VerifiableTarget]
"""Returns the target of a table, whose name it gets."""


class TableVerifier:
    """Compares the tables of one source with their targets.

    Args:
        given: the source's options.
        make_target: returns the targets.
        progress: of the query that writes them; None: nothing is known of it, so nothing may be written meanwhile.
        session: Spark's, whose tasks read; None: this process does.
        settings: how tables are compared.
        send: asks the query for snapshots, to repair what differs; None: nothing is repaired.
    """

    def __init__(
        self,
        given: Mapping[str, str],
        make_target: MakeTarget,
        progress: QueryProgress | None,
        session: SparkSession | None,
        settings: Settings,
        send: Send | None = None,
    ) -> None:
        self._source = SourceTables(given)
        self._make_target = make_target
        self._progress = progress
        self._runner = Runner(session)
        self._settings = settings
        self._send = send

    def run(self, chosen: Sequence[Pattern] = ()) -> Verification:
        """Compare tables.

        Args:
            chosen: patterns of whole names; all tables if there are none.

        Raises:
            FloodmarkError: the source can't be reached, or is another one than the query's.
            ConfigError: a pattern matches no table.
        """
        self._locate()
        tables = self._source.names()
        if not tables:
            raise ConfigError("The source's filters match no table.", "Correct table.include.list.")
        for pattern in chosen:
            if not any(pattern.fullmatch(name) for name in tables):
                raise ConfigError(
                    f"No captured table has a name that '{pattern.pattern}' matches.",
                    f"There are: {', '.join(sorted(tables)[:10]) or 'none'}.",
                )
        names = [name for name in sorted(tables) if not chosen or any(one.fullmatch(name) for one in chosen)]
        return Verification([self.compare(tables[name]) for name in names])

    def compare(self, tables: Sequence[CapturedTable]) -> TableResult:
        """Compare one table.

        Args:
            tables: its parts at the source.
        """
        name = tables[0].published
        try:
            target = self._make_target(name)
            if self._progress is not None:
                incomplete = reads(self._progress.committed(), name)
                owner = target.view().query if target.exists() else None
                if owner is not None and owner != self._progress.query:
                    incomplete = "another query writes the target"
                if incomplete:
                    return TableResult(name, "not compared", incomplete)
            comparison = TableComparison(self._source, tables, target, self._runner, self._wait, self._settings)
            return self._repaired(comparison.run(), comparison, target)
        except FloodmarkError as error:
            return TableResult(name, "not compared", str(error))
        except (BaseError, OSError) as error:
            return TableResult(name, "not compared", f"The target can't be read: {describe(error)}")

    def _repaired(self, result: TableResult, comparison: TableComparison, target: VerifiableTarget) -> TableResult:
        if self._send is None or not result.count:
            return result
        follows = self._progress is not None and not self._settings.at_rest
        patience_s = REPAIR_PATIENCE * self._settings.patience_s
        try:
            return Repair(comparison, target, self._send, self._source.backslashes, follows, patience_s).run(result)
        except FloodmarkError as error:
            return replace(result, reason=str(error))

    def close(self) -> None:
        """Close all connections to the source."""
        self._source.close()

    def _wait(self, position: str, until: float) -> bool:
        return self._progress is not None and self._progress.wait(position, until)

    def _locate(self) -> None:
        offset = None if self._progress is None else self._progress.committed()
        if offset is not None and offset.log:
            self._source.locate(offset.log, offset.bookmark)


def delta_targets(location: str) -> MakeTarget:
    """Return the Delta tables of a mirror.

    Args:
        location: a path or a URI, below which they are.
    """
    return lambda table: DeltaTarget(location, table)


def relational_targets(options: Mapping[str, str], source: Mapping[str, str]) -> MakeTarget:
    """Return the tables of a relational database.

    Args:
        options: those of the sink ``jdbc``.
        source: the source's.

    Raises:
        ConfigError: an option is wrong.
    """
    from floodmark.sinks.relational.options import JdbcOptions
    from floodmark.sinks.relational.reading.target import RelationalTarget

    chosen, given = JdbcOptions.parse(options), load_options(source)
    return lambda table: RelationalTarget(chosen, given, table)


def iceberg_targets(location: str, options: Mapping[str, str]) -> MakeTarget:
    """Return the Iceberg tables of a mirror, which the active session of Spark reads, or Floodmark itself.

    Args:
        location: the mirror's path.
        options: the mirror's.

    Raises:
        ConfigError: an option is wrong, or no session is active, or it lacks the catalogue.
    """
    from pyspark.sql import SparkSession

    from floodmark.sinks.options import MirrorOptions
    from floodmark.spark.iceberg.runtime import require_catalogue
    from floodmark.spark.iceberg.tables import catalogue_targets, required_session
    from floodmark.spark.iceberg.verifiable import IcebergTarget

    chosen = MirrorOptions.parse(options)
    if chosen.catalogue:
        require_catalogue(chosen)
        return catalogue_targets(location, chosen)
    session = required_session(SparkSession.getActiveSession(), chosen)
    return lambda table: IcebergTarget(session, location, chosen, table)


def _targets(target: str | Mapping[str, str], mirror: Mapping[str, str], source: Mapping[str, str]) -> MakeTarget:
    if not isinstance(target, str):
        return relational_targets(target, source)
    return iceberg_targets(target, mirror) if mirror.get("format") == "iceberg" else delta_targets(target)


def verify(
    options: Mapping[str, str],
    target: str | Mapping[str, str],
    checkpoint: str | None = None,
    *,
    tables: Sequence[str] = (),
    repair: bool = False,
    values: bool = False,
    limit: int = LIMIT,
    at_rest: bool = False,
    wait_s: float = WAIT_S,
    leave_out: Sequence[str] = (),
    mirror: Mapping[str, str] | None = None,
) -> Verification:
    """Compare the tables of a source with their targets, row by row, while the stream goes on.

    If a session of Spark is active, its tasks read; otherwise this process does.

    Args:
        options: the source's options, as for ``spark.readStream``.
        target: the path of a mirror, or the options of the sink ``jdbc``.
        checkpoint: the query's, which tells how far the targets are; None with ``at_rest``.
        tables: regular expressions of the names to compare, as ``schema.table``; all if empty.
        repair: whether to repair what differs: the running query reads rows again, and rows that the source hasn't are
            deleted.
        values: whether differences have the rows' values, not only the keys.
        limit: how many differences of a table are listed.
        at_rest: whether nothing is written to the source meanwhile, so that the query needs not run.
        wait_s: how long to wait for the targets to follow, and how long to look at rows that change all the time.
        leave_out: regular expressions of columns that aren't compared, as ``schema.table.column``.
        mirror: the mirror's options, which are needed with ``format=iceberg``. Then a session of Spark with the
            catalogue must be active, unless the options name the catalogue.

    Returns:
        What was found of each table.

    Raises:
        ConfigError: an option is wrong.
        CheckpointError: the checkpoint can't be read.
        FloodmarkError: the source can't be reached, or is not the query's.
    """
    from pyspark.sql import SparkSession

    if checkpoint is None and not at_rest:
        raise ConfigError(
            "Without the query's checkpoint it isn't known how far the targets are.",
            "Give the checkpoint, or at_rest=True if nothing is written to the source.",
        )
    if limit < 0 or wait_s < 0:
        raise ConfigError(
            f"The arguments limit and wait_s are {limit} and {wait_s}; neither may be negative.",
            "Give numbers from 0 on.",
        )
    columns, chosen = _patterns("leave_out", leave_out), _patterns("tables", tables)
    settings = Settings(limit, values, at_rest, wait_s, lambda name: any(one.fullmatch(name) for one in columns))
    progress = None if checkpoint is None else QueryProgress(checkpoint)
    session, send = SparkSession.getActiveSession(), _sender(options) if repair else None
    verifier = TableVerifier(options, _targets(target, mirror or {}, options), progress, session, settings, send)
    try:
        return verifier.run(chosen)
    finally:
        verifier.close()


def _sender(options: Mapping[str, str]) -> Send:
    """Return what asks the query of a source for snapshots."""
    from floodmark.signals.files import new_signal, send

    source = load_options(options)

    def ask(data: Mapping[str, Any]) -> str:
        signal = new_signal("execute-snapshot", data)
        send(source, source.owner, signal)
        return signal.id

    return ask


def _patterns(name: str, texts: Sequence[str]) -> list[Pattern]:
    """Return regular expressions.

    Raises:
        ConfigError: one of them is none.
    """
    try:
        return [Pattern(text) for text in texts]
    except ValueError as error:
        raise ConfigError(
            f"The argument '{name}' has something that is no regular expression: {error}.",
            "Escape what is meant as it is.",
        ) from None
