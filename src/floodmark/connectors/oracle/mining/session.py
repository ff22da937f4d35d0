"""A LogMiner session: which logs it has, and what it is asked.

Oracle Database Utilities, "Using LogMiner to Analyze Redo Log Files". A session begins with the first log that is
added; it lives in the server's session, so it ends with the connection.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pyarrow as pa

from floodmark.connectors.oracle.mining.contents_query import ContentsFilter, all_changes, committed_changes
from floodmark.connectors.oracle.mining.dictionary import FILE, FILE_CURE, DictionaryChoice
from floodmark.connectors.oracle.mining.logs import LogFile
from floodmark.connectors.oracle.mining.view import FETCHED, rows_of_the_view
from floodmark.connectors.oracle.server.connection import Connection, batches, run
from floodmark.connectors.oracle.server.database import utc_offset_s
from floodmark.connectors.oracle.sql import constant

GRANT = "GRANT EXECUTE ON DBMS_LOGMNR, LOGMINING, and SELECT ON V_$LOGMNR_CONTENTS TO the account (see docs/oracle.md)."
_NO_ROW_IDS = "DBMS_LOGMNR.NO_ROWID_IN_STMT"
_COMMITTED = "DBMS_LOGMNR.COMMITTED_DATA_ONLY"


class MiningSession:
    """Mines the log over a connection.

    Args:
        conn: the connection, which nothing else uses.
        wanted: what is read of the logs.
        fetch_size: how many rows are fetched at once.
        dictionary: where the names of tables and columns come from.
        committed_only: whether only transactions that were committed are shown, one after the other.
    """

    def __init__(
        self,
        conn: Connection,
        wanted: ContentsFilter,
        fetch_size: int,
        dictionary: DictionaryChoice,
        committed_only: bool = False,
    ) -> None:
        self.conn = conn
        self.opened = time.monotonic()
        self._fetch_size = fetch_size
        self._logs: list[tuple[str, tuple[int, int]]] = []
        self._dictionary = dictionary
        self._committed_only = committed_only
        self._query = (committed_changes if committed_only else all_changes)(wanted)

    def mine(self, logs: Sequence[LogFile], after: int, upto: int, begin: int) -> Iterator[pa.Table]:
        """Yield the rows of changes, or those of commits, in a range of numbers, ``(after, upto]``, in their order.

        Args:
            logs: that have all of them.
            after: the number behind which they begin.
            upto: the last number.
            begin: the number behind which LogMiner reads; of what was committed only, all must lie behind it.

        Raises:
            UnreadableLogError: a log is gone, or has other contents by now.
            ConnectError: the connection was lost.
        """
        self._use(sorted(logs, key=lambda log: log.place))
        dictionary = self._dictionary
        options = " + ".join([*dictionary.options, _NO_ROW_IDS, *[_COMMITTED] * self._committed_only])
        bounds = f"startScn => '{begin + 1}', endScn => '{upto}', options => {options}{dictionary.argument}"
        cure = FILE_CURE if dictionary.strategy == FILE else GRANT
        run(self.conn, f"BEGIN SYS.DBMS_LOGMNR.START_LOGMNR({bounds}); END;", "starting LogMiner", cure)
        # It may change with the seasons.
        offset_s = utc_offset_s(self.conn)
        # The last number is excluded from the range of commits.
        binds = [str(after + 1), str(upto + 1)] if self._committed_only else [str(after), str(upto)]
        for fetched in batches(self.conn, self._query, "reading V$LOGMNR_CONTENTS", FETCHED, self._fetch_size, binds):
            yield rows_of_the_view(fetched, offset_s)

    def _use(self, logs: Sequence[LogFile]) -> None:
        """Give the session its logs, unless it has them: a file may hold another log by now."""
        wanted = [(log.name, log.place) for log in logs]
        if wanted == self._logs:
            return
        self._logs = []
        for number, log in enumerate(logs):
            option = "ADDFILE" if number else "NEW"
            file = f"LOGFILENAME => {constant(log.name)}, OPTIONS => DBMS_LOGMNR.{option}"
            run(self.conn, f"BEGIN SYS.DBMS_LOGMNR.ADD_LOGFILE({file}); END;", f"adding the log {log.name}", GRANT)
        self._logs = wanted
