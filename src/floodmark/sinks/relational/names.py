"""The names of target tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Annotated

from pydantic import AfterValidator

from floodmark.config.common import CommonOptions
from floodmark.config.model import nearest

_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")
_LONGEST = 150
"""Characters of a name in Floodmark's own tables."""
PLACEHOLDERS = ("topic", "source.schema", "source.table", "source.db")


def checked_format(value: str) -> str:
    """Return a format of names.

    Raises:
        ValueError: it has a placeholder that isn't known, or none that tells tables apart.
    """
    used = _PLACEHOLDER.findall(value)
    for name in used:
        if name not in PLACEHOLDERS:
            hint = nearest(name, PLACEHOLDERS) or f"Known are {', '.join(PLACEHOLDERS)}."
            raise ValueError(f"it has the placeholder '{name}', which isn't known. {hint}")
    if "source.table" not in used and "topic" not in used:
        raise ValueError("it must have ${source.table} or ${topic}, or all tables would have one target")
    if "$" in _PLACEHOLDER.sub("", value) or "\0" in value:
        raise ValueError("it has a '$' that begins no placeholder")
    return value


NameFormat = Annotated[str, AfterValidator(checked_format)]


def target_of(form: str, table: str, source: CommonOptions) -> str:
    """Return the name of a table's target.

    Args:
        form: the option ``collection.name.format``.
        table: ``schema.table`` of the source.
        source: the source's options.
    """
    return target_name(form, table, source.topic_prefix, str(getattr(source, "dbname", "") or ""))


def registered_name(name: str, folds: bool) -> str:
    """Return a target's name in the form by which Floodmark's own tables know it.

    Args:
        folds: whether the database takes names for the same that differ only in case.
    """
    name = name.casefold() if folds else name
    # The target of one that is too long is set aside, and the mark needs a name.
    return name if len(name) <= _LONGEST else f"{name[:100]}~{blake2b(name.encode(), digest_size=16).hexdigest()}"


def target_name(form: str, table: str, prefix: str, database: str) -> str:
    """Return the name of a table's target.

    Args:
        form: the option ``collection.name.format``.
        table: ``schema.table`` of the source.
        prefix: the source's ``topic.prefix``.
        database: the source's database; empty where schemas are databases.
    """
    schema, _, name = table.partition(".")
    values: Mapping[str, str] = {
        # As Debezium's sink does, since a dot would have to be quoted wherever the name is written.
        "topic": f"{prefix}.{table}".replace(".", "_"),
        "source.schema": schema,
        "source.table": name,
        "source.db": database or schema,
    }
    return _PLACEHOLDER.sub(lambda found: values[found[1]], form)
