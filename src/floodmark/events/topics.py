"""Names topics as ``topic.naming.strategy`` requires."""

from __future__ import annotations

from floodmark.config.common import CommonOptions
from floodmark.config.java_patterns import Renaming
from floodmark.events.names import legal_topic


def table_topic(options: CommonOptions, schema: str, table: str) -> str:
    """Return a table's topic, by default ``prefix.schema.table``."""
    own = _own_topic(options, schema, table)
    legal = legal_topic(own, "Unicode" in options.topic_naming_strategy)
    if not _by_regex(options):
        return legal
    return _renamed(legal, options.topic_regex, options.topic_replacement) or legal


def table_key_fields(options: CommonOptions, schema: str, table: str) -> tuple[tuple[str, str], ...]:
    """Return the names and values of the fields that a table's keys have besides its columns."""
    if not _by_regex(options) or not options.topic_key_enforce_uniqueness:
        return ()
    own = _own_topic(options, schema, table)
    if options.topic_key_field_regex:
        own = _renamed(own, options.topic_key_field_regex, options.topic_key_field_replacement)
    return ((options.topic_key_field_name, own),)


def _by_regex(options: CommonOptions) -> bool:
    return "Regex" in options.topic_naming_strategy


def _own_topic(options: CommonOptions, schema: str, table: str) -> str:
    parts = (options.topic_prefix, *options.topic_parts(schema, table))
    return options.topic_delimiter.join(part for part in parts if part.strip())


def _renamed(name: str, regex: str | None, replacement: str | None) -> str:
    renamed = Renaming(regex or "", replacement or "")(name)
    return name if renamed is None else renamed
