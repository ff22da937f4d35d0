"""``floodmark.rebuild``: a target gets the source's rows anew, at once, while the stream goes on."""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import uuid4

from obstore.exceptions import BaseError

from floodmark.connectors.load import load_options
from floodmark.errors import ConfigError, SourceStateError, TargetUnfitError
from floodmark.logger import get_logger
from floodmark.rebuilding.followed import FollowedSnapshot
from floodmark.signals.files import new_signal, send
from floodmark.sinks.options import MirrorOptions
from floodmark.sinks.rebuilds.mark import RebuildMark
from floodmark.sinks.rebuilds.target import RebuildableTarget, Replaced
from floodmark.spark.checkpoint import Checkpoint
from floodmark.verification.progress import QueryProgress, reads
from floodmark.verification.source import SourceTables

log = get_logger(__name__)

WAIT_S = 600.0
_POLL_S = 0.5
_SHOWN = 10
"""How many names are shown where none fits."""
Tell = Callable[[str], None]
"""Receives lines that tell how far it is."""


@dataclass(frozen=True)
class Rebuilt:
    """What came of it.

    Attributes:
        table: the source's name of the table.
        replaced: whether the target was replaced; False: the rebuilding was cancelled.
        version: what the target calls its state since then; None if it was cancelled.
    """

    table: str
    replaced: bool
    version: str | None


def rebuild(
    options: Mapping[str, str],
    target: str | Mapping[str, str],
    checkpoint: str,
    table: str,
    *,
    cancel: bool = False,
    wait_s: float = WAIT_S,
    tell: Tell | None = None,
    mirror: Mapping[str, str] | None = None,
) -> Rebuilt:
    """Read a table of the source again, and then put its rows in the place of those that its target has.

    The query that writes the target must run: it reads the table by an incremental snapshot while the stream goes on,
    and writes what it delivers to a shadow as well. Readers see the old rows until one commit replaces them. A
    rebuilding that was interrupted goes on when this is called again.

    Args:
        options: the source's options, as for ``spark.readStream``.
        target: the path of a mirror, or the options of the sink ``jdbc``.
        checkpoint: the query's.
        table: the source's name of the table, ``schema.table``.
        cancel: whether to give up a rebuilding that was interrupted, instead.
        wait_s: how long to wait while the query doesn't go on.
        tell: receives lines that tell how far it is.
        mirror: the mirror's options, which are needed with ``format=iceberg``. Then a session of Spark with the
            catalogue must be active, unless the options name the catalogue.

    Raises:
        ConfigError: an option is wrong, there is no such table, or nothing to be cancelled.
        TargetError: the target can't be rebuilt, or was changed by others meanwhile.
        SourceStateError: the table's rows can't be read, or the query doesn't go on.
        FloodmarkError: the source, the checkpoint or the target can't be reached.
    """
    if wait_s < 0:
        raise ConfigError(f"The argument wait_s is {wait_s}; it can't be negative.", "Give a number from 0 on.")
    progress = QueryProgress(checkpoint)
    found = _target(options, target, mirror or {}, table, progress.query)
    one = _Rebuilding(options, found, checkpoint, progress, table, wait_s, tell or _silent)
    try:
        return one.cancel() if cancel else one.run()
    except (BaseError, OSError) as error:
        raise found.failure(error) from error


def _target(
    options: Mapping[str, str],
    target: str | Mapping[str, str],
    mirror: Mapping[str, str],
    table: str,
    query: str,
) -> RebuildableTarget:
    if isinstance(target, str):
        return _mirrored(target, MirrorOptions.parse(mirror), table, query)
    from floodmark.sinks.relational.options import JdbcOptions
    from floodmark.sinks.relational.rebuilding.target import RebuildableRelation

    return RebuildableRelation(JdbcOptions.parse(target), load_options(options), table, query)


def _mirrored(path: str, mirror: MirrorOptions, table: str, query: str) -> RebuildableTarget:
    if mirror.engine != "floodmark":
        raise ConfigError(
            f"The mirror has engine={mirror.engine}; only tables that Floodmark itself writes can be rebuilt.",
            "Remove the target, and start the query with the mirror's option missing.tables=read.",
        )
    if mirror.format == "iceberg":
        from pyspark.sql import SparkSession

        from floodmark.spark.iceberg.tables import rebuildable_table

        return rebuildable_table(path, mirror, table, query, SparkSession.getActiveSession())
    from floodmark.sinks.delta.rebuilding.target import RebuildableDeltaTable

    return RebuildableDeltaTable(path, table, query)


class _Rebuilding:
    def __init__(
        self,
        options: Mapping[str, str],
        target: RebuildableTarget,
        checkpoint: str,
        progress: QueryProgress,
        table: str,
        wait_s: float,
        tell: Tell,
    ) -> None:
        self._given = options
        self._source = load_options(options)
        self._target = target
        self._checkpoint = Checkpoint(checkpoint)
        self._progress = progress
        self._table = table
        self._wait_s = wait_s
        self._tell = tell

    def run(self) -> Rebuilt:
        """Rebuild the table, or go on with that."""
        mark = self._target.mark()
        if mark is not None and self._target.is_replaced(mark):
            return self._finished(mark)
        self._prove_captured()
        self._prove_fit(mark is not None)
        if mark is not None and mark.error:
            self._tell(f"The last try has failed: {mark.error}")
            self._give_up(mark)
            mark = None
        mark, snapshot = self._begin() if mark is None else (mark, self._resume(mark))
        self._follow(mark, snapshot)
        self._replace(mark, snapshot.empty)
        return self._finished(mark)

    def cancel(self) -> Rebuilt:
        """Give up what another call has begun."""
        mark = self._target.mark()
        if mark is None:
            raise ConfigError(
                f"The table '{self._table}' is not being rebuilt.", "floodmark status shows which tables are."
            )
        if self._target.is_replaced(mark):
            return self._finished(mark)
        self._give_up(mark)
        return Rebuilt(self._table, False, None)

    def _prove_captured(self) -> None:
        source = SourceTables(self._given)
        try:
            names = sorted(source.names())
        finally:
            source.close()
        if self._table not in names:
            close = difflib.get_close_matches(self._table, names, n=1)
            there = f"There are: {', '.join(names[:_SHOWN]) or 'none'}."
            raise ConfigError(
                f"The query captures no table '{self._table}'.", f"Did you mean '{close[0]}'?" if close else there
            )

    def _prove_fit(self, begun: bool) -> None:
        """Check that nothing is lost by reading the table again, and that the query can do so.

        Args:
            begun: whether it may be reading the table for this already.
        """
        incomplete = reads(self._progress.committed(), self._table)
        if incomplete and not begun:
            raise SourceStateError(
                f"The table '{self._table}' can't be rebuilt now: {incomplete}.",
                "Wait until that has ended; floodmark status shows it.",
            )
        view = self._target.view()
        if view.query != self._progress.query:
            raise ConfigError(
                f"Another query than the checkpoint's writes the target '{self._table}'.",
                "Give the checkpoint of the query that writes it.",
            )
        lost = {
            "soft": "rows that the source has deleted, which would be gone",
            "history": "versions that the source hasn't any more",
        }
        if view.mode in lost:
            raise TargetUnfitError(
                f"The target '{self._table}' has {lost[view.mode]}, so it can't be rebuilt from the source.",
                "Let floodmark verify --repair bring right what differs, or, if they aren't needed, remove the target "
                "and start the query with missing.tables=read.",
            )
        if not view.key:
            raise TargetUnfitError(
                f"The table '{self._table}' has no key: its target keeps its changes, which can't be read again.",
                "Give the table a key, or name columns that are one with message.key.columns.",
            )

    def _begin(self) -> tuple[RebuildMark, FollowedSnapshot]:
        """Mark the table, and only then let it be read, so that the shadow gets all that follows."""
        batch = self._newest()
        mark = RebuildMark(str(uuid4()), self._table, str(uuid4()), batch)
        if not self._target.begin(mark):
            raise ConfigError(
                f"The table '{self._table}' is being rebuilt by another call already.", "Wait until that has ended."
            )
        self._ask(mark)
        return mark, FollowedSnapshot(self._checkpoint, self._table, mark.signal, batch)

    def _resume(self, mark: RebuildMark) -> FollowedSnapshot:
        """Go on with a snapshot that reads or has read the table; otherwise let it be read again."""
        snapshot = FollowedSnapshot(self._checkpoint, self._table, mark.signal, mark.batch)
        try:
            snapshot.look()
            if snapshot.begun:
                self._tell(f"{self._table}: goes on")
                return snapshot
        except SourceStateError as error:
            # The shadow still gets all rows, so only the table has to be read again.
            log.info("a_table_is_read_again", table=self._table, why=str(error))
        self._tell(f"{self._table}: is read again")
        newest = self._newest()
        self._ask(mark)
        return FollowedSnapshot(self._checkpoint, self._table, mark.signal, newest)

    def _newest(self) -> int:
        """Return the newest micro-batch that was planned; -1 without one."""
        offsets = self._checkpoint.offsets()
        return offsets[-1].batch if offsets else -1

    def _ask(self, mark: RebuildMark) -> None:
        data = {"data-collections": [re.escape(self._table)]}
        send(self._source, self._source.owner, new_signal("execute-snapshot", data, mark.signal))

    def _follow(self, mark: RebuildMark, snapshot: FollowedSnapshot) -> None:
        """Wait until all rows have been read."""
        self._tell(f"{self._table}: waits for the query to read it")
        seen, until, told = -2, 0.0, ""
        while not snapshot.done:
            snapshot.look()
            self._prove_sound(mark)
            if snapshot.batch != seen:
                seen, until = snapshot.batch, time.monotonic() + self._wait_s
            elif time.monotonic() >= until:
                raise SourceStateError(
                    f"The query hasn't gone on for {self._wait_s:.0f} s, so the table '{self._table}' isn't rebuilt "
                    "yet.",
                    "Start the query, and then this again: it goes on. With cancel it is given up.",
                )
            read, estimate = snapshot.rows
            line = f"{self._table}: {read:,} of about {max(read, estimate):,} rows are read"
            if read and line != told:
                self._tell(line)
                told = line
            if not snapshot.done:
                time.sleep(_POLL_S)

    def _prove_sound(self, mark: RebuildMark) -> None:
        """Check that the table and its shadow still get rows, so that nobody waits in vain."""
        self._target.prove_written()
        found = self._target.mark()
        if found is None or found.id != mark.id:
            raise SourceStateError(f"The rebuilding of '{self._table}' was cancelled meanwhile.")
        if found.error:
            raise SourceStateError(f"The table '{self._table}' can't be rebuilt. {found.error}", "Rebuild it again.")

    def _replace(self, mark: RebuildMark, empty: bool) -> None:
        until = time.monotonic() + self._wait_s
        self._tell(f"{self._table}: all rows are read, the table is replaced")
        while self._target.attempt(mark, empty) is not Replaced.DONE:
            # The attempt has looked at the mark.
            self._target.prove_written()
            if time.monotonic() >= until:
                raise SourceStateError(
                    f"The query has written a micro-batch to the shadow of '{self._table}', but not to the table, for "
                    f"{self._wait_s:.0f} s.",
                    "Start the query, and then this again: it goes on.",
                )
            time.sleep(_POLL_S)

    def _finished(self, mark: RebuildMark) -> Rebuilt:
        self._target.finish(mark)
        version = self._target.view().version
        log.info("a_table_was_rebuilt", table=self._table, id=mark.id, version=version)
        return Rebuilt(self._table, True, version)

    def _give_up(self, mark: RebuildMark) -> None:
        self._target.give_up(mark)
        log.info("a_rebuilding_was_given_up", table=self._table, id=mark.id)


def _silent(line: str) -> None:
    del line
