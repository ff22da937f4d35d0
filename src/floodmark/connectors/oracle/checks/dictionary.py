"""Whether LogMiner has the dictionary that it is told to use."""

from __future__ import annotations

from floodmark.connectors.contract.findings import Finding
from floodmark.connectors.oracle.mining.available_logs import archive_destinations, available_logs
from floodmark.connectors.oracle.mining.dictionary import BUILD_GRANT, FILE, REDO_LOGS, dictionaries_in
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.server.connection import Connection, value

_NAME = "dictionary"
_MAY_WRITE = "SELECT COUNT(*) FROM ALL_PROCEDURES WHERE OWNER = 'SYS' AND OBJECT_NAME = 'DBMS_LOGMNR_D'"


def dictionary(root: Connection, options: OracleOptions) -> list[Finding]:
    """Check the dictionary.

    Args:
        root: a connection to where the log is mined.
        options: the source's options.
    """
    if options.strategy == FILE:
        text = (
            f"{options.dictionary_path} is only opened when LogMiner is started; tables that are altered need another."
        )
        return [Finding(_NAME, "warning", text, "Write it again after each such statement, and read the table again.")]
    if options.strategy != REDO_LOGS:
        return []
    if not options.mining_read_only and not value(root, _MAY_WRITE, "reading ALL_PROCEDURES"):
        return [Finding(_NAME, "error", "The account may not write the dictionary into the redo logs.", BUILD_GRANT)]
    logs = available_logs(
        root, 0, options.archive_hours, options.archived_only, archive_destinations(root, options.destinations)
    )
    found = dictionaries_in(logs)
    if not found and options.mining_read_only:
        text = "No archived log has a complete dictionary, and log.mining.read.only=true forbids to write one."
        return [Finding(_NAME, "error", text, BUILD_GRANT)]
    if not found:
        return [Finding(_NAME, "ok", "the redo logs have none; one is written when the query starts")]
    return [Finding(_NAME, "ok", f"{len(found)} in the redo logs, the last one up to {found[-1].next}")]
