"""Decides whether a query may write a micro-batch to an Iceberg table: once each, and only to its own table."""

from __future__ import annotations

from collections.abc import Sequence

from floodmark.errors import TargetChangedError, TargetError, TargetUnfitError
from floodmark.sinks.iceberg.state import DELETES, KEY, OWNER, TABLE, Done, TableState
from floodmark.sinks.micro_batches import comes_again
from floodmark.sinks.options import MirrorOptions, Mode
from floodmark.sinks.table_properties import properties_of

_VECTORS = {
    True: {"format-version": "3", "modes": "merge-on-read"},
    False: {"format-version": "2", "modes": "copy-on-write"},
}
_MODES = ("write.delete.mode", "write.update.mode", "write.merge.mode")


class Admission:
    """What is asked of a table before it is written.

    Args:
        table: the source's name of it, ``schema.table``.
        application: names the query in the table's properties.
        options: the mirror's.
    """

    def __init__(self, table: str, application: str, options: MirrorOptions) -> None:
        self._table = table
        self._application = application
        self._options = options

    def properties(self, key: Sequence[str]) -> dict[str, str]:
        """Return the properties that the table is made with.

        Args:
            key: the columns of the key.
        """
        wanted = _VECTORS[self._options.has_vectors]
        return {
            "format-version": wanted["format-version"],
            # A micro-batch writes two files of metadata or more.
            "write.metadata.delete-after-commit.enabled": "true",
            **dict.fromkeys(_MODES, wanted["modes"]),
            **properties_of(self._table, self._options.table_properties),
            **self.own_properties(key),
        }

    def own_properties(self, key: Sequence[str]) -> dict[str, str]:
        """Return the properties that make a table this query's.

        Args:
            key: the columns of the key.
        """
        return {OWNER: self._application, TABLE: self._table, KEY: ",".join(key), DELETES: self._mode(key)}

    def _mode(self, key: Sequence[str]) -> Mode:
        return self._options.mode if key else "hard"

    def is_own(self, state: TableState) -> bool:
        """Return whether the table has been made this query's.

        Raises:
            TargetChangedError: it is another query's now, or lacks what this one has written.
        """
        done = state.done(self._application)
        if done is not None:
            self._prove_kept(state, done)
        # Rows come with the commit that says what is done, so others have written any that are there before.
        return done is not None or (state.properties.get(OWNER) == self._application and not state.has_rows)

    def must_be_replaced(self, state: TableState) -> bool:
        """Return whether a table that isn't this query's is to be made again.

        Raises:
            TargetChangedError: it has rows, and the options don't say that they may be removed.
            TargetError: it is another table's target.
        """
        table = state.properties.get(TABLE, self._table)
        if table != self._table:
            raise TargetError(
                f"The Iceberg table for '{self._table}' has the name of the one for '{table}'.",
                "Leave one of the two out with table.exclude.list: names in a catalogue have '_' for what isn't a "
                "letter, a digit or '_'.",
            )
        if state.has_rows and self._options.existing_tables == "fail":
            raise TargetChangedError(
                f"The Iceberg table '{self._table}' has rows that this query has not written; its checkpoint is new, "
                "or another one's. Rows that the source deleted in between would stay.",
                "Set the mirror's option existing.tables to 'empty', drop the table, give the query another schema, "
                "or start it with the checkpoint that belongs to the table.",
            )
        return state.has_rows or OWNER in state.properties

    def _prove_kept(self, state: TableState, done: Done) -> None:
        """Raise an error if another query has made the table its own, or an earlier snapshot was brought back."""
        if state.properties.get(OWNER, self._application) != self._application:
            raise TargetChangedError(
                f"Another query has emptied the Iceberg table '{self._table}' and writes it now.",
                "Give each query a schema of its own. To take the table over, end the other one, and start this one "
                "with a new checkpoint and the mirror's option existing.tables=empty.",
            )
        if state.lacks(done):
            raise TargetChangedError(
                f"The Iceberg table '{self._table}' was brought back to an earlier snapshot or replaced, so it lacks "
                "what this query has written since.",
                "Start the query with a new checkpoint and the mirror's option existing.tables=empty.",
            )

    def prove_written(self, state: TableState, batch: int | None) -> None:
        """Check that a table has what this query is known to have written.

        Args:
            batch: the number of the last micro-batch; None: it isn't known.

        Raises:
            TargetChangedError: the table doesn't have it.
        """
        done = state.done(self._application)
        if batch is not None and (done is None or done.batch < batch):
            raise TargetChangedError(
                f"The Iceberg table '{self._table}' lacks micro-batch {batch}, which this query has written: the "
                "catalogue was restored from a backup, or another table has taken its place.",
                "Put the table back as it was, or drop it and start the query with the mirror's option "
                "missing.tables=read.",
            )

    def prove_made_for(self, state: TableState, key: Sequence[str]) -> None:
        """Check that a table was made for a key, and for a way in which rows are deleted.

        Raises:
            TargetUnfitError: it was made for another key, or none.
            TargetError: it was made for another way.
        """
        mode, made_for = self._mode(key), state.properties.get(DELETES, "hard")
        if made_for != mode:
            raise TargetError(
                f"The Iceberg table '{self._table}' was made with the mirror's option deletes={made_for}, but now it "
                f"is {mode}.",
                f"Set deletes={made_for}, or drop the table and start the query with missing.tables=read.",
            )
        found = state.properties.get(KEY)
        if found is not None and found != ",".join(key):
            raise TargetUnfitError(
                f"The Iceberg table '{self._table}' was made for the key ({found}), but the source's is "
                f"({', '.join(key)}).",
                "Drop the table, and start the query with the mirror's option missing.tables=read.",
            )

    def is_done(self, batch: int, mark: int, state: TableState) -> bool:
        """Return whether a micro-batch is the last one of the table, which Spark delivers again.

        Args:
            mark: tells it from others with that number.

        Raises:
            TargetChangedError: it is an earlier one, or another one with that number: the checkpoint is older than the
                table.
        """
        done = state.done(self._application)
        if done is None or done.batch < batch:
            return False
        if done.batch == batch and comes_again(done.mark, mark):
            return True
        raise TargetChangedError(
            f"The checkpoint is older than the Iceberg table '{self._table}': it goes on with micro-batch {batch}, but "
            f"the table has {done.batch} already, with other rows.",
            "Start the query with the checkpoint that belongs to the table. If it is lost, use a new one, with the "
            "mirror's option existing.tables=empty.",
        )
