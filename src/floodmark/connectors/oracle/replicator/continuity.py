"""Whether a server still has all messages behind a position."""

from __future__ import annotations

from floodmark.connectors.oracle.continuity.check import NEW_SNAPSHOT
from floodmark.connectors.oracle.continuity.resume_point import ResumePoint
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.position import Position
from floodmark.connectors.oracle.replicator.client import ReplicatorClient
from floodmark.connectors.oracle.replicator.confirmation import holds_all
from floodmark.connectors.oracle.replicator.protocol import NO_NUMBER, Response, ResponseCode
from floodmark.connectors.oracle.replicator.transactions import Key
from floodmark.errors import LogGoneError

_ANEW = (
    f"Ways out: {NEW_SNAPSHOT}; or, if the archived logs are still there, stop the server, remove its checkpoint "
    "files, and start it again, so that this query lets it begin where it needs."
)


def replicator(options: OracleOptions) -> ReplicatorClient:
    """Return a connection to the server that the options name."""
    host, port, source = options.replicator_host, options.replicator_port, options.replicator_source
    assert host is not None
    assert port is not None
    assert source is not None
    timeout_ms = options.query_timeout_ms
    return ReplicatorClient(
        host,
        port,
        source,
        options.connect_timeout_ms / 1000,
        timeout_ms / 1000 if timeout_ms else None,
    )


def asked(options: OracleOptions) -> Response:
    """Return what a server says of its source, over a connection of its own."""
    client = replicator(options)
    try:
        return client.info()
    finally:
        client.close()


def newest_confirmed(found: Response) -> Key | None:
    """Return a key that only confirmations after this answer can reach; None: nothing was confirmed."""
    scn, index = found.confirmed
    return None if found.code == ResponseCode.READY or scn == NO_NUMBER else (scn, index + 2)


def prove_replicated(found: Response, position: str, known: ResumePoint | None) -> None:
    """Verify that a server has what follows a position.

    Args:
        found: what it says of its source.
        position: what follows it is wanted.
        known: what the offset says of it; None: nothing.

    Raises:
        LogGoneError: it doesn't have it, or may not have it.
    """
    if found.code == ResponseCode.READY:
        return
    scn = Position.parse(position).scn
    if found.scn >= scn:
        raise LogGoneError(
            f"OpenLogReplicator sends only what was committed behind the change number {found.scn}, and the query has "
            f"come to {scn - 1}: what was committed between them would be lost.",
            _ANEW,
        )
    confirmed = found.confirmed
    key = None if known is None else known.replicated
    if confirmed[0] != NO_NUMBER and not holds_all(confirmed, key):
        came = "nothing" if key is None else f"the message {key[0]}.{key[1]}"
        raise LogGoneError(
            f"OpenLogReplicator was told to forget its messages up to {confirmed[0]}.{confirmed[1]}, and this query "
            f"has taken over {came}: another client has read of this server, or the checkpoint is an earlier one, or "
            "the server doesn't send checkpoints (flags of the source without 4096) and forgets them by itself.",
            f"{_ANEW} Give each query a server of its own.",
        )
