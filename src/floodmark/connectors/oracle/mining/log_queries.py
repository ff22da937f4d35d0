"""Queries about logs: which there are, and how far back they go. Their texts are Debezium's (``SqlUtils``)."""

from __future__ import annotations

from collections.abc import Sequence

from floodmark.connectors.oracle.sql import constant, constants

_ONLINE = (
    "SELECT MIN(F.MEMBER) AS FILE_NAME, L.FIRST_CHANGE# FIRST_CHANGE, L.NEXT_CHANGE# NEXT_CHANGE, L.ARCHIVED, "
    "L.STATUS, 'ONLINE' AS TYPE, L.SEQUENCE# AS SEQ, 'NO' AS DICT_START, 'NO' AS DICT_END, L.THREAD# AS THREAD, "
    "L.BYTES AS BYTES, NULL AS DEST_NAME FROM V$LOGFILE F, V$DATABASE D, V$LOG L WHERE L.STATUS = 'CURRENT' AND "
    "F.GROUP# = L.GROUP# GROUP BY F.GROUP#, L.FIRST_CHANGE#, L.NEXT_CHANGE#, L.STATUS, L.ARCHIVED, L.SEQUENCE#, "
    "L.THREAD#, L.BYTES UNION "
)
_ARCHIVED = (
    "SELECT A.NAME AS FILE_NAME, A.FIRST_CHANGE# FIRST_CHANGE, A.NEXT_CHANGE# NEXT_CHANGE, 'YES', NULL, "
    "'ARCHIVED', A.SEQUENCE# AS SEQ, A.DICTIONARY_BEGIN, A.DICTIONARY_END, A.THREAD# AS THREAD, "
    "A.BLOCKS*A.BLOCK_SIZE, DS.DEST_NAME FROM V$ARCHIVED_LOG A, V$DATABASE D, V$ARCHIVE_DEST_STATUS DS WHERE "
    "A.NAME IS NOT NULL AND A.ARCHIVED = 'YES' AND A.STATUS = 'A' AND A.NEXT_CHANGE# > {scn} AND {destination} "
    "AND {incarnation}{age} ORDER BY 7"
)
_OLDEST = (
    "SELECT MIN(FIRST_CHANGE#) FROM (SELECT MIN(FIRST_CHANGE#) AS FIRST_CHANGE# FROM V$LOG UNION SELECT "
    "MIN(A.FIRST_CHANGE#) AS FIRST_CHANGE# FROM V$ARCHIVED_LOG A, V$DATABASE D, V$ARCHIVE_DEST_STATUS DS WHERE "
    "{destination} AND A.STATUS='A' AND {incarnation}{age})"
)
_DELETED = (
    "SELECT A.NAME AS FILE_NAME, A.FIRST_CHANGE# FIRST_CHANGE, A.NEXT_CHANGE# NEXT_CHANGE, A.SEQUENCE# AS SEQ, "
    "A.THREAD# AS THREAD FROM V$ARCHIVED_LOG A, V$DATABASE D, V$ARCHIVE_DEST_STATUS DS WHERE A.NAME IS NOT NULL "
    "AND A.ARCHIVED = 'YES' AND A.STATUS = 'D' AND A.FIRST_CHANGE# <= {scn} AND A.NEXT_CHANGE# > {scn} AND "
    "{destination} AND {incarnation}"
)
_INCARNATION = "A.RESETLOGS_CHANGE# = D.RESETLOGS_CHANGE# AND A.RESETLOGS_TIME = D.RESETLOGS_TIME"
"""Archived logs of an earlier life of the database have numbers that mean something else."""


def minable_logs(scn: int, hours: int, archived_only: bool, destinations: Sequence[str]) -> str:
    """Return the query of the logs that have changes behind a number.

    Args:
        scn: the number.
        hours: only archived logs that are no older; 0: all.
        archived_only: whether the logs that are being written are left out.
        destinations: names of the archive destinations.
    """
    archived = _ARCHIVED.format(
        scn=scn, destination=_destination(destinations), incarnation=_INCARNATION, age=_age(hours)
    )
    return archived if archived_only else _ONLINE + archived


def oldest_scn(hours: int, destinations: Sequence[str]) -> str:
    """Return the query of the first number that any log has; see ``minable_logs``."""
    return _OLDEST.format(destination=_destination(destinations), incarnation=_INCARNATION, age=_age(hours))


def deleted_logs(scn: int, destinations: Sequence[str]) -> str:
    """Return the query of the logs with a number that were deleted; see ``minable_logs``."""
    return _DELETED.format(scn=scn, destination=_destination(destinations), incarnation=_INCARNATION)


def scn_before(scn: int, minutes: int) -> str:
    """Return the query of the number that was the newest so many minutes before another one."""
    return f"select timestamp_to_scn(CAST(scn_to_timestamp({scn}) as date) - INTERVAL '{minutes}' MINUTE) from dual"


def _destination(names: Sequence[str]) -> str:
    which = f"= {constant(names[0])}" if len(names) == 1 else f"IN ({constants(names)})"
    return f"A.DEST_ID = DS.DEST_ID AND DS.DEST_NAME {which}"


def _age(hours: int) -> str:
    return f" AND A.FIRST_TIME >= SYSDATE - ({hours}/24)" if hours else ""
