"""How old open transactions are, in change numbers."""

from __future__ import annotations

from floodmark.connectors.oracle.mining.log_queries import scn_before
from floodmark.connectors.oracle.server.connection import Connection, value
from floodmark.errors import ReadPointGoneError
from floodmark.logger import get_logger

log = get_logger(__name__)


def scn_at_age(conn: Connection, scn: int, minutes: int) -> int:
    """Return the number that was the newest so many minutes before another one; 0: the server doesn't know.

    It maps numbers to times for some days only; what is older began before it, so 0 lets it stay.
    """
    try:
        return int(value(conn, scn_before(scn, minutes), "looking for a change number by its age"))
    except ReadPointGoneError as exc:
        log.warning("age_of_change_is_not_known", scn=scn, minutes=minutes, reason=exc.what)
        return 0
