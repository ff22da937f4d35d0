"""Reads the source's rows of some keys at a read point."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import numpy as np
import pyarrow as pa

from floodmark.connectors.contract.captured_table import CapturedTable
from floodmark.connectors.contract.read_points import ReadPoint
from floodmark.errors import SourceStateError
from floodmark.logger import get_logger
from floodmark.verification.candidates import KEY_HASH
from floodmark.verification.conditions import key_conditions, named
from floodmark.verification.hashes import Hashes
from floodmark.verification.source import SourceTables
from floodmark.verification.tasks import Compared, Picking, Runner, add_rows

log = get_logger(__name__)


class KeyLookup:
    """Reads rows by conditions on their keys, or by a scan where the source can't find a key by a condition.

    Args:
        source: the source.
        tables: the table's parts at the source.
        compared: names and types of the columns, and the key.
        runner: does the scans.

    Attributes:
        compared: what is compared.
    """

    def __init__(
        self, source: SourceTables, tables: Sequence[CapturedTable], compared: Compared, runner: Runner
    ) -> None:
        self._source = source
        self._tables = tables
        self.compared = compared
        self._runner = runner
        self._backslashes = source.backslashes
        self._scanned: set[int] = set()
        self._scans_all = False

    def prove(self, point: ReadPoint, keys: pa.Table, present: Hashes) -> None:
        """Find the keys that conditions don't find, such as those of types whose texts mean something else.

        Args:
            point: a read point.
            keys: the keys, with their hashes.
            present: the hashes of those that the source has at the read point.
        """
        hashes = _hashes(keys)
        lacking = [not one for one in named(keys.select(list(self.compared.key)), self._backslashes)]
        self._scanned = {int(one) for one in hashes[np.asarray(lacking, np.bool_)]}
        try:
            found = Picking(self.compared, np.unique(hashes)).keys_of(self._by_condition(point, keys))
        except SourceStateError as error:
            # The grammar refuses the condition, or the server a value, such as one that an enumeration has lost.
            log.info("keys_are_looked_for_by_scans", table=self._tables[0].published, why=error.what)
            self._scans_all = True
            return
        self._scanned |= {int(one) for one in np.setxor1d(found, np.intersect1d(present, hashes))}

    def finds(self, keys: pa.Table) -> bool:
        """Return whether conditions find all of some keys.

        Args:
            keys: the keys, with their hashes.
        """
        return not self._scans_all and not any(int(one) in self._scanned for one in _hashes(keys))

    def rows(self, point: ReadPoint, keys: pa.Table) -> pa.Table:
        """Return the rows of keys.

        Args:
            keys: the keys, with their hashes.
        """
        hashes = _hashes(keys)
        scanned = np.asarray([self._scans_all or int(one) in self._scanned for one in hashes], np.bool_)
        picking = Picking(self.compared, np.unique(hashes[~scanned]))
        found = [picking.of(self._by_condition(point, keys.filter(pa.array(~scanned))))]
        if scanned.any():
            scan = Picking(self.compared, np.unique(hashes[scanned]))
            rows: list[pa.Table] = self._runner.run(scan, self._source.chunks(point, self._tables), add_rows, [])
            found += rows
        return pa.concat_tables(found)

    def _by_condition(self, point: ReadPoint, keys: pa.Table) -> pa.Table:
        found = [self.compared.columns.empty_table()]
        for condition, _ in key_conditions(keys.select(list(self.compared.key)), self._backslashes):
            with closing(self._source.with_condition(point, self._tables, condition, self.compared.columns)) as tables:
                found += map(self.compared.shape, tables)
        return pa.concat_tables(found)


def _hashes(keys: pa.Table) -> Hashes:
    return np.asarray(keys[KEY_HASH].to_numpy(), dtype=np.uint64)
