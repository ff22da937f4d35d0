"""Options of mirrors."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, model_validator

from floodmark.config.model import OWN, Options, SecretFamily, option
from floodmark.sinks.column_rules import ColumnRules
from floodmark.sinks.table_properties import PropertyRules

Mode = Literal["hard", "soft", "history"]
"""What becomes of rows that are changed or deleted: nothing is left of them, they are marked, or become versions."""
_VERSIONS = ("2", "3")
"""Versions of Iceberg's format that mirrors write."""
_SCHEMA = re.compile(r"[^.`\s]+(\.[^.`\s]+)?")


def _as_schema(value: str | None) -> str | None:
    if value is not None and not _SCHEMA.fullmatch(value):
        raise ValueError("it must be <catalog>.<schema> or <schema>, such as main.shop, without quotes")
    return value


def _as_number_of_files(value: int) -> int:
    if value == 1:
        raise ValueError("it must be 0 (never) or at least 2")
    return value


NumberOfFiles = Annotated[int, AfterValidator(_as_number_of_files)]
SchemaName = Annotated[str | None, AfterValidator(_as_schema)]


class MirrorOptions(Options):
    """How target tables are kept."""

    format: Literal["delta", "iceberg"] = option(
        "format",
        "delta",
        "The format of the targets: `delta`, or `iceberg`, for tables of a catalogue, which need Iceberg's runtime in "
        "Spark. A pipeline file has it as the key `sink.format`.",
        OWN,
    )
    engine: Literal["floodmark", "spark"] = option(
        "engine",
        "floodmark",
        "What writes the targets. `floodmark`: Floodmark itself, Delta tables with every Spark and without jars. "
        "`spark`: Delta's or Iceberg's runtime in Spark, with `MERGE`, for tables that must be written through it.",
        OWN,
    )
    catalog_schema: SchemaName = option(
        "catalog.schema",
        None,
        "With `engine=spark`, the schema of a catalogue in which the targets are registered, and by whose names they "
        "are written: `<catalog>.<schema>`, or `<schema>` in Spark's own catalogue. The table `public.orders` has the "
        "name `public_orders` there. Its files are below the mirror's path all the same. With `format=iceberg` it must "
        "be given, with its catalogue.",
        OWN,
    )
    catalog: SecretFamily = option(
        "catalog.<property>",
        {},
        "With `format=iceberg`, a property of the catalogue by pyiceberg's name, such as `catalog.type` and "
        "`catalog.uri`. With any of them Floodmark itself commits to the catalogue, through pyiceberg, and Spark needs "
        "neither Iceberg's runtime nor the catalogue.",
        OWN,
    )
    new_columns: Literal["read", "leave_null", "fail"] = option(
        "new.columns",
        "read",
        "When a table of the source gets a column, the log tells nothing of the values that its rows have there. "
        "`read`: the table is read again by an incremental snapshot while the stream goes on; until then its earlier "
        "rows have null. `leave_null`: they keep null. `fail`: the query ends before it writes the column. A renamed "
        "column is a new one.",
        OWN,
    )
    deletion_vectors: Literal["on", "off"] = option(
        "deletion.vectors",
        "on",
        "How rows are replaced. `on`: they are marked in deletion vectors, which costs what has changed. `off`: the "
        "files that hold them are written again, for readers that don't know deletion vectors; this costs what they "
        "hold.",
        OWN,
    )
    deletes: Literal["hard", "soft"] = option(
        "deletes",
        "hard",
        "`hard`: rows that the source deletes are deleted. `soft`: they stay with their last values and `_deleted` = "
        "true (`_is_deleted` with `format=iceberg`); so do all rows before a truncate. For tables without a key it "
        "changes nothing.",
        OWN,
    )
    history: Literal["off", "on"] = option(
        "history",
        "off",
        "`on`: every version of a row stays as a row of its own, with the times from which on, and to which, it was "
        "valid (`valid_from`, `valid_to`) and whether it is current (`is_current`). For tables without a key it "
        "changes nothing.",
        OWN,
    )
    compact_files: NumberOfFiles = option(
        "compact.files",
        10,
        "When a target has so many data files of about the same size, they are rewritten as one, beside the "
        "micro-batches. 0: never.",
        OWN,
        ge=0,
    )
    vacuum_hours: int = option(
        "vacuum.hours",
        0,
        "For how many hours files stay that no row is read from any more, for readers of earlier versions. They are "
        "removed now and then after a micro-batch. 0: never.",
        OWN,
        ge=0,
        le=168,
    )
    table_properties: PropertyRules = option(
        "table.properties",
        (),
        "Properties that targets get when they are made: `<table>:<name>=<value>;…`, where the table is a regular "
        "expression. The last one that matches counts.",
        OWN,
    )
    cluster_by: ColumnRules = option(
        "cluster.by",
        (),
        "Columns by which targets are clustered (liquid clustering), from when they are made: "
        "`<table>:<column>,<column>;…`, where the table is a regular expression. The last one that matches counts. "
        "Spark's `OPTIMIZE` arranges the rows.",
        OWN,
    )
    partition_by: ColumnRules = option(
        "partition.by",
        (),
        "Columns by which targets are partitioned, from when they are made: `<table>:<column>,<column>;…`, where the "
        "table is a regular expression. The last one that matches counts. Whole numbers, texts, dates or booleans, "
        "with few values.",
        OWN,
    )
    missing_tables: Literal["fail", "read"] = option(
        "missing.tables",
        "fail",
        "When a target that the query has made is gone: `fail` ends the query. `read` makes it again, and the table is "
        "read again by an incremental snapshot while the stream goes on, or, without a key, by a blocking one.",
        OWN,
    )
    existing_tables: Literal["fail", "empty"] = option(
        "existing.tables",
        "fail",
        "When a target has rows that another query wrote, such as one with another checkpoint: `fail` ends the query, "
        "since rows that were deleted between the two would stay. `empty` removes them with the first micro-batch that "
        "has rows of the table.",
        OWN,
    )

    @model_validator(mode="after")
    def _check_modes(self) -> Self:
        if self.history == "on" and self.deletes == "soft":
            raise ValueError(
                "Options 'history' and 'deletes' exclude each other where they are 'on' and 'soft': with a history, "
                "deleted rows stay anyway."
            )
        if self.history == "on" and self.engine == "spark":
            raise ValueError(
                "Options 'history' and 'engine' exclude each other where they are 'on' and 'spark': only Floodmark's "
                "own engine writes histories."
            )
        if self.partition_by and self.engine == "spark":
            raise ValueError(
                "Option 'partition.by' needs engine=floodmark: Spark's writer would make null of empty texts."
            )
        if self.catalog_schema is not None and self.engine != "spark" and self.format != "iceberg":
            raise ValueError("Option 'catalog.schema' needs engine=spark or format=iceberg.")
        return self

    @model_validator(mode="after")
    def _check_catalogue(self) -> Self:
        if not self.catalog:
            return self
        named = f"catalog.{next(iter(self.catalog))}"
        if self.format != "iceberg":
            raise ValueError(f"Option '{named}' needs format=iceberg.")
        if self.engine == "spark":
            raise ValueError(
                f"Options '{named}' and 'engine' exclude each other where the latter is 'spark': Spark has the "
                "properties of its catalogues itself, spark.sql.catalog.<catalog>.…."
            )
        versions = {rule.value for rule in self.table_properties if rule.name == "format-version"}
        if versions - {"2"} or ("deletion_vectors" in self.model_fields_set and self.deletion_vectors == "on"):
            raise ValueError(
                f"Option '{named}' lets pyiceberg commit, which writes format version 2 without deletion vectors: "
                "leave deletion.vectors and format-version out."
            )
        return self

    @model_validator(mode="after")
    def _check_format(self) -> Self:
        if self.format != "iceberg":
            return self
        if self.catalog_schema is None or "." not in self.catalog_schema:
            raise ValueError(
                "Option 'format' is 'iceberg', which needs catalog.schema=<catalog>.<schema>, such as lake.shop."
            )
        if self.history == "on":
            raise ValueError("Option 'history' needs format=delta: there are no histories in Iceberg tables.")
        if self.partition_by:
            raise ValueError(
                "Option 'partition.by' needs format=delta. With engine=spark, an Iceberg table that you make yourself, "
                "without rows, keeps its partitions."
            )
        if self.cluster_by:
            raise ValueError("Option 'cluster.by' needs format=delta: Iceberg has no liquid clustering.")
        others = sorted({rule.name for rule in self.table_properties if rule.name.startswith("delta.")})
        if others:
            raise ValueError(f"Option 'table.properties' has '{others[0]}', which Iceberg tables don't have.")
        if any(rule.name == "format-version" and rule.value not in _VERSIONS for rule in self.table_properties):
            raise ValueError(
                f"Option 'table.properties' has a format-version other than {' and '.join(_VERSIONS)}: rows can't be "
                "replaced in others."
            )
        return self

    @property
    def catalogue(self) -> dict[str, str]:
        """The properties of the catalogue by pyiceberg's names, with secrets in plain text."""
        return {name: value.get_secret_value() for name, value in self.catalog.items()}

    @property
    def has_vectors(self) -> bool:
        """Whether replaced rows are marked in deletion vectors, as far as that is Floodmark's choice."""
        return self.deletion_vectors == "on" and not self.catalog

    @property
    def mode(self) -> Mode:
        """What becomes of rows that are changed or deleted."""
        return "history" if self.history == "on" else self.deletes
