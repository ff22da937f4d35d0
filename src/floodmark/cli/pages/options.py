"""Renders the option reference, ``docs/options.md``, from the option models.

Run ``python -m floodmark.cli.pages.options docs/options.md`` after a change to a model.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated, get_args, get_origin

from pydantic.fields import FieldInfo

from floodmark.config.columns import ColumnOptions, HashRule
from floodmark.config.common import CommonOptions
from floodmark.config.model import OWN, SAME, Family, Options, allowed_values, is_secret, limits, without_none
from floodmark.config.snapshot import SnapshotOptions
from floodmark.config.stream import StreamOptions
from floodmark.connectors.mysql.options import BinlogOptions, MariadbOptions, MysqlOptions
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.postgres.options import IdentityRule, PostgresBatchOptions, PostgresOptions
from floodmark.connectors.postgres.replication_options import ReplicationOptions

HEADER = "| option | type | default | meaning | Debezium |\n| --- | --- | --- | --- | --- |"
INTRODUCTION = """# Options

Options of the source, for `spark.readStream.format("floodmark").option(…)` and for `source:` in a
pipeline file. Names ignore case. Lists are separated by commas; `\\,` is a comma inside an item. Regular
expressions are matched against whole names, ignoring case. An unknown option is an error.

The last column names the Debezium property that an option stands for: *same* if it has the same name,
values and meaning, – if Debezium has none.

This page is generated from the option models.
"""
BATCH = """`spark.read.format("floodmark")` reads one table as it is now. It takes the options of the connection, of the
tables, of how values are represented and `snapshot.chunk.bytes`; `topic.prefix` and `state.dir` must be left out,
and the others have no effect.
"""


def render() -> str:
    """Return the whole page."""
    columns, streams = set(ColumnOptions.model_fields), set(StreamOptions.model_fields)
    parts = [INTRODUCTION, "## All connectors\n", _table(CommonOptions, {*columns, *streams})]
    parts += ["\n## Columns, keys and names\n", "What they mean in detail: [Columns](columns.md).\n"]
    parts.append(_table(ColumnOptions, set()))
    parts += [
        "\n## Topics, transactions, heartbeats, failures\n",
        "What they do in detail: [Beside rows](stream.md).\n",
    ]
    parts.append(_table(StreamOptions, set(SnapshotOptions.model_fields)))
    parts += ["\n## Snapshots\n", "What they mean in detail: [Snapshots](snapshots.md).\n"]
    parts.append(_table(SnapshotOptions, set()))
    parts += [
        "\n## PostgreSQL: `connector=postgres`\n",
        _table(PostgresOptions, set(ReplicationOptions.model_fields)),
        "\n## PostgreSQL: the log\n",
        _table(ReplicationOptions, set(CommonOptions.model_fields)),
        "\n## PostgreSQL: batch reads\n",
        BATCH,
        _table(PostgresBatchOptions, set(PostgresOptions.model_fields)),
        "\n## MySQL and MariaDB: `connector=mysql`, `connector=mariadb`\n",
        _table(BinlogOptions, _unchanged(BinlogOptions, CommonOptions)),
        "\n## MySQL\n",
        _table(MysqlOptions, set(BinlogOptions.model_fields)),
        "\n## MariaDB\n",
        _table(MariadbOptions, set(BinlogOptions.model_fields)),
        "\n## Oracle: `connector=oracle`\n",
        _table(OracleOptions, _unchanged(OracleOptions, CommonOptions)),
    ]
    return "\n".join(parts) + "\n"


def _unchanged(model: type[Options], base: type[Options]) -> set[str]:
    """Return the fields that a model inherits from its base unchanged."""
    return {name for name, field in base.model_fields.items() if _row(field) == _row(model.model_fields[name])}


def _table(model: type[Options], without: set[str]) -> str:
    rows = [_row(field) for name, field in model.model_fields.items() if name not in without]
    return "\n".join([HEADER, *rows])


def _row(field: FieldInfo) -> str:
    cells = [f"`{field.alias}`", _type(field), _default(field), _meaning(field), _debezium(field)]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _type(field: FieldInfo) -> str:
    choices = allowed_values(field)
    if choices:
        return "one of " + ", ".join(f"`{choice}`" for choice in choices)
    if is_secret(field) and field.annotation != tuple[HashRule, ...]:
        return "secret text"
    return _type_name(field.annotation) + limits(field)


def _type_name(annotation: object) -> str:
    annotation = without_none(annotation)
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) is tuple:
        item = get_args(annotation)[0]
        return {str: "list of words", IdentityRule: "text"}.get(item, "list of regular expressions")
    names: dict[object, str] = {str: "text", int: "integer", bool: "`true` or `false`", Family: "text"}
    return names[annotation]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "*required*"
    value = field.default
    if value is None or value in ((), "", {}):
        return "–"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{','.join(value)}`" if isinstance(value, tuple) else f"`{value}`"


def _meaning(field: FieldInfo) -> str:
    return field.description or ""


def _debezium(field: FieldInfo) -> str:
    extra = field.json_schema_extra
    equivalent = str(extra.get("debezium", SAME)) if isinstance(extra, dict) else SAME
    return {SAME: "same", OWN: "–"}.get(equivalent) or re.sub(r"[a-z]+(\.\w+)+", r"`\g<0>`", equivalent)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
