"""Creating the publication, as ``publication.autocreate.mode`` says."""

from __future__ import annotations

from collections.abc import Sequence

from floodmark.config.postgres import PostgresOptions
from floodmark.connectors.postgres.server.catalog import Conn, Table, literal, quote
from floodmark.connectors.postgres.server.connection import run, server_version
from floodmark.errors import SourceStateError

PUBLISHED = {"c": "insert", "u": "update", "d": "delete", "t": "truncate"}


def ensure_publication(conn: Conn, options: PostgresOptions, tables: Sequence[Table]) -> None:
    """Create the publication if it is missing; with mode ``filtered``, set its tables.

    Args:
        conn: an ordinary connection.
        options: the source's options.
        tables: the captured tables.

    Raises:
        SourceStateError: it is missing and must not or cannot be created.
    """
    name = options.publication_name
    mode = options.publication_autocreate_mode
    exists = bool(run(conn, f"SELECT 1 FROM pg_publication WHERE pubname = {literal(name)}", "the publications"))
    if exists and mode != "filtered":
        return
    if mode == "disabled":
        raise SourceStateError(
            f"The publication '{name}' does not exist and 'publication.autocreate.mode' is 'disabled'.",
            f"Create it (CREATE PUBLICATION {quote(name)} FOR TABLE …) or set another mode.",
        )
    cure = (
        "Grant CREATE on the database and the ownership of the tables (superuser for all tables), or create it by hand."
    )
    doing = f"the creation of the publication '{name}'"
    if mode == "filtered":
        if not tables:
            raise SourceStateError(
                "No table matches the filters, so the publication would be empty.",
                "Check table.include.list.",
            )
        names = ", ".join(table.quoted for table in tables)
        if exists:
            run(
                conn,
                f"ALTER PUBLICATION {quote(name)} SET TABLE {names}",
                f"changing the publication '{name}'",
                cure,
            )
        else:
            run(
                conn,
                f"CREATE PUBLICATION {quote(name)} FOR TABLE {names}{_settings(conn, options)}",
                doing,
                cure,
            )
    else:
        target = " FOR ALL TABLES" if mode == "all_tables" else ""
        run(conn, f"CREATE PUBLICATION {quote(name)}{target}{_settings(conn, options)}", doing, cure)


def _settings(conn: Conn, options: PostgresOptions) -> str:
    operations = ", ".join(word for op, word in PUBLISHED.items() if not options.skips(op))
    settings = f"publish = '{operations}'"
    if server_version(conn) >= 13:
        settings += f", publish_via_partition_root = {str(options.publish_via_partition_root).lower()}"
    return f" WITH ({settings})"
