"""The model of a query in ``pipeline.yaml``: a source, a sink, and how Spark runs the query between them."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from floodmark.config.common import CommonOptions
from floodmark.config.model import Options, nearest
from floodmark.connectors.load import load_options
from floodmark.errors import ConfigError
from floodmark.json_data import Json
from floodmark.sinks.kafka.options import KafkaOptions
from floodmark.sinks.kafka.topics import TOPIC_CREATION
from floodmark.sinks.options import MirrorOptions
from floodmark.sinks.relational.options import JdbcOptions
from floodmark.spark.pipelines.text import as_texts

FILE_SINKS = ("json", "parquet", "mirror")
_TARGETS: Mapping[str, type[Options]] = {"mirror": MirrorOptions, "jdbc": JdbcOptions}
"""The options of the sinks that keep tables."""
_MODELS: Mapping[str, type[Options]] = {**_TARGETS, "kafka": KafkaOptions}
"""The options of sinks of which Floodmark knows all."""
_OF_MIRRORS = {"format": "arrow", "skipped.operations": "none"}
"""What they need the source's options to be, which therefore needn't be given."""
DEFAULT_MASTER = "local[*]"
KEYS = ("name", "source", "sink", "sinks", "errors", "checkpoint", "trigger", "spark")
"""The keys of a pipeline file."""
_EXAMPLES = {
    "source": "Write the source's options there, such as {connector: postgres, …}.",
    "sink": "Write where the events go, such as {type: parquet, path: /data/events}.",
    "sinks": "Write a name for each sink, and where its events go, such as {lake: {type: mirror, path: /data/lake}}.",
    "sink.type": "Write where the events go: console, json, parquet, kafka, mirror, jdbc or noop.",
    "sink.options": "Write options of Spark's sink there, such as {compression: zstd}.",
    "checkpoint": "Name a directory for the query's checkpoint, which no other query uses.",
    "trigger": "Write when a micro-batch starts, such as {processingTime: 10 seconds} or {availableNow: true}.",
    "spark": "Write properties of Spark there, such as {spark.master: 'local[4]'}.",
}
_WHOLE = {"source": ", such as database.hostname", "spark": ", such as spark.master"}
_SET_BY_KEYS = {"checkpointlocation": "checkpoint", "path": "{}.path"}
"""Options of Spark's sinks that keys of the file set; the sink's key stands for the braces."""
_UNIT = "(?:millisecond|second|minute|hour|day|week)s?"
_INTERVAL = re.compile(rf"(?:interval\s+)?\d+(?:\.\d+)?\s*{_UNIT}(?:\s+\d+\s*{_UNIT})*", re.IGNORECASE)


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=False, hide_input_in_errors=True)


def sink_key(info: ValidationInfo) -> str:
    """Return the key of the sink that is validated: ``sink``, unless the context says otherwise."""
    return str((info.context or {}).get("sink", "sink"))


class Sink(_Section):
    """Where the events go."""

    type: Literal["console", "json", "parquet", "kafka", "mirror", "jdbc", "noop"]
    path: str | None = None
    format: Literal["delta", "iceberg"] | None = None
    options: dict[str, str] = Field(default={}, repr=False)
    transform: str | None = None

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Self:
        key = sink_key(info)
        if self.type in FILE_SINKS and not self.path:
            raise ValueError(f"Key '{key}.path' is required for the sink '{self.type}'.")
        if self.type not in FILE_SINKS and self.path:
            raise ValueError(f"Key '{key}.path' is not allowed for the sink '{self.type}'.")
        if self.type != "mirror" and self.format:
            raise ValueError(f"Key '{key}.format' is not allowed for the sink '{self.type}'.")
        if self.type == "mirror" and "format" in map(str.lower, self.options):
            raise ValueError(f"Key '{key}.options' must not have 'format': write the key '{key}.format' instead.")
        for name in self.options:
            if name.lower() in _SET_BY_KEYS:
                by = _SET_BY_KEYS[name.lower()].format(key)
                raise ValueError(f"Key '{key}.options' must not have '{name}': write the key '{by}' instead.")
        model = _MODELS.get(self.type)
        if model is not None:
            try:
                model.parse(self.mirror_options if self.type == "mirror" else self.options)
            except ConfigError as error:
                raise ValueError(f"Key '{key}.options': {error}") from None
        if self.type == "kafka" and not self.options.get("kafka.bootstrap.servers"):
            raise ValueError(f"Key '{key}.options' needs 'kafka.bootstrap.servers' for the sink 'kafka'.")
        if self.transform is not None and self.type in _TARGETS:
            raise ValueError(
                f"Key '{key}.transform' is not allowed for the sink '{self.type}', whose tables equal the source's. "
                "Choose columns and rows by options of the source, such as column.exclude.list."
            )
        if self.transform is not None and not self.transform.strip():
            raise ValueError(f"Key '{key}.transform' is empty. Write a SELECT from the view events, or leave it out.")
        return self

    @property
    def mirror_options(self) -> dict[str, str]:
        """The options of a mirror."""
        return self.options if self.format is None else {**self.options, "format": self.format}

    @property
    def needs_connector(self) -> bool:
        """Whether it writes with Spark's connector for Kafka."""
        return self.type == "kafka" and KafkaOptions.parse(self.options).engine == "spark"

    @property
    def takes_blocks(self) -> bool:
        """Whether it takes blocks of events."""
        return self.type == "kafka" and self.transform is None and not self.needs_connector

    @property
    def needs_delta(self) -> bool:
        """Whether it is a mirror that Spark writes with Delta's runtime."""
        return (
            self.format != "iceberg" and self.type == "mirror" and MirrorOptions.parse(self.options).engine == "spark"
        )

    @property
    def needs_iceberg(self) -> bool:
        """Whether it is a mirror that Spark writes with Iceberg's runtime."""
        is_iceberg = self.type == "mirror" and self.format == "iceberg"
        return is_iceberg and not MirrorOptions.parse(self.mirror_options).catalogue


class Trigger(_Section):
    """When a micro-batch starts; one after another without a pause if nothing is given."""

    processing_time: str | None = Field(None, alias="processingTime")
    available_now: bool = Field(False, alias="availableNow")
    once: bool = False

    @field_validator("processing_time")
    @classmethod
    def _check_interval(cls, value: str | None) -> str | None:
        if value is not None and not _INTERVAL.fullmatch(value.strip()):
            raise ValueError("it must be an interval such as '10 seconds'")
        return value

    @model_validator(mode="after")
    def _check_only_one(self) -> Self:
        given = {"processingTime": self.processing_time is not None, "availableNow": self.available_now}
        named = [f"'{name}'" for name, is_given in {**given, "once": self.once}.items() if is_given]
        if len(named) > 1:
            raise ValueError(f"Keys {' and '.join(named)} of 'trigger' exclude each other: give only one.")
        return self


class Pipeline(_Section):
    """A query: all of a pipeline file that has one sink, or what concerns one of several.

    Attributes:
        label: the sink's name among several; empty if there is only one.
    """

    label: str = ""
    name: str | None = None
    source: dict[str, str] = Field(repr=False)
    sink: Sink
    checkpoint: str
    trigger: Trigger = Field(default_factory=lambda: Trigger.model_validate({}))
    spark: dict[str, str] = {}

    @model_validator(mode="before")
    @classmethod
    def _for_mirrors(cls, given: Any) -> Any:
        sink, source = given.get("sink"), given.get("source")
        if not isinstance(sink, Mapping) or not isinstance(source, Mapping) or sink.get("type") not in _TARGETS:
            return given
        lower = {str(name).lower(): value for name, value in source.items()}
        for name, value in _OF_MIRRORS.items():
            if lower.get(name, value) != value:
                raise ValueError(f"The sink '{sink['type']}' needs the source's option '{name}' to be '{value}'.")
        missing = {name: value for name, value in _OF_MIRRORS.items() if name not in lower}
        return {**given, "source": {**source, **missing}}

    @field_validator("checkpoint")
    @classmethod
    def _check_checkpoint(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("it must be a directory, which no other query uses")
        return value

    @field_validator("spark")
    @classmethod
    def _check_spark(cls, value: dict[str, str]) -> dict[str, str]:
        for key in value:
            if not key.startswith("spark."):
                raise ValueError(f"'{key}' is not a Spark property; write 'spark.{key}' if that is meant")
        return value

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if self.options.format != "events" and self.sink.type == "kafka":
            raise ValueError("The sink 'kafka' needs the source's option 'format' to be 'events'.")
        if self.options.event_blocks:
            raise ValueError("Key 'source' has 'event.blocks', which a pipeline sets itself: leave it out.")
        misplaced = [name for name in self.source if name.lower().startswith(TOPIC_CREATION)]
        if misplaced and self.sink.type == "kafka":
            raise ValueError(
                f"Key 'source' has '{misplaced[0]}', but the sink makes topics: write the options {TOPIC_CREATION}* in "
                "'sink.options'."
            )
        return self

    @property
    def options(self) -> CommonOptions:
        """The source's options."""
        return load_options(self.source)

    @property
    def title(self) -> str:
        """The pipeline's name: the file's ``name``, else the source's ``topic.prefix``."""
        return self.name or self.options.topic_prefix

    @property
    def sink_key(self) -> str:
        """The key of the file that the sink is under."""
        return f"sinks.{self.label}" if self.label else "sink"

    @property
    def query_name(self) -> str:
        """The query's name in Spark."""
        return f"{self.title}.{self.label}" if self.label else self.title

    @property
    def master(self) -> str:
        """The Spark master to run on."""
        return self.spark.get("spark.master", DEFAULT_MASTER)

    @property
    def is_local(self) -> bool:
        """Whether driver and executors are one process on this machine."""
        return is_local(self.master)


def is_local(master: str) -> bool:
    """Return whether a Spark master runs driver and executors as one process on this machine."""
    return master.split("[")[0] == "local"


def parse_pipeline(content: Mapping[str, Json], environment: Mapping[str, str] = os.environ) -> Pipeline:
    """Read the content of a pipeline file that has one sink; see ``pipelines.load_file``.

    Raises:
        ConfigError: a key or value is not allowed.
    """
    texts = section_texts(content, [key for key in KEYS if key not in ("sinks", "errors")], environment)
    for key, model in (("sink", Sink), ("trigger", Trigger)):
        section = texts.get(key)
        if isinstance(section, Mapping):
            refuse_unknown(names_of(model), section, f"{key}.")
    return validated(texts)


def section_texts(content: Mapping[str, Json], known: Sequence[str], environment: Mapping[str, str]) -> dict[str, Json]:
    """Return the keys of a file with their values as texts.

    Raises:
        ConfigError: a key is unknown, a mapping is a list, or a variable is not set.
    """
    refuse_unknown(known, content, "")
    for key in ("source", "sink", "sinks", "trigger", "spark"):
        if isinstance(content.get(key), list):
            raise ConfigError(f"Key '{key}' in the pipeline file must be a mapping, not a list.", _EXAMPLES[key])
    return {key: as_texts(value, key, environment) for key, value in content.items()}


def validated(texts: Mapping[str, Json], key: str = "sink") -> Pipeline:
    """Return the query that texts describe.

    Args:
        texts: the model's.
        key: the key of the file that the sink is under.

    Raises:
        ConfigError: a key or value is not allowed.
    """
    try:
        return Pipeline.model_validate(texts, context={"sink": key})
    except ValidationError as exc:
        raise _explain(exc, key) from None


def refuse_unknown(known: Sequence[str], content: Mapping[str, Json], where: str) -> None:
    """Raise an error for an unknown key.

    Args:
        known: the known keys.
        content: the mapping.
        where: what stands before its keys in errors.
    """
    for key in content:
        if key not in known:
            close = difflib.get_close_matches(str(key).lower(), known, n=1)
            hint = f"Did you mean '{where}{close[0]}'?" if close else f"Allowed: {', '.join(known)}."
            raise ConfigError(f"Unknown key '{where}{key}' in the pipeline file.", hint)


def names_of(model: type[BaseModel]) -> list[str]:
    """Return the keys of a section."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _explain(exc: ValidationError, sink: str) -> ConfigError:
    """Turn pydantic's report into one sentence about the first wrong key.

    Args:
        sink: the key that the sink is under.
    """
    error = exc.errors()[0]
    where = ".".join(str(part) for part in error["loc"])
    example = _EXAMPLES.get(where, "")
    if where.split(".")[0] == "sink":
        where = sink + where.removeprefix("sink")
    reason = str(error["msg"]).removeprefix("Value error, ").strip().rstrip(".")
    if error["type"] == "missing":
        return ConfigError(f"Key '{where}' is required in the pipeline file.", example)
    section = str(error["loc"][0]) if error["loc"] else ""
    if error["type"] == "string_type" and len(error["loc"]) > 1:
        return ConfigError(
            f"Key '{where}' in the pipeline file is a mapping; it must be a plain value.",
            f"Write each entry directly in '{section}', by its whole name{_WHOLE.get(section, '')}.",
        )
    if error["type"] == "string_type":
        return ConfigError(f"Key '{where}' in the pipeline file must be a plain value.")
    if error["type"] in ("model_type", "dict_type"):
        return ConfigError(f"Key '{where}' in the pipeline file must be a mapping.", example)
    if error["type"] == "value_error" and reason.startswith(("Key", "The ")):
        return ConfigError(reason if reason.endswith("?") else f"{reason}.")
    # Only values of the source and of sinks' options can be secret; any text is valid there, so none is shown here.
    shown = f" has the value '{error['input']}', which" if isinstance(error["input"], str) else ""
    problem = f"Key '{where}'{shown} is not allowed:"
    if error["type"] == "literal_error":
        choices = re.findall("'([^']+)'", str(error["ctx"]["expected"]))
        other = "Other sinks need a program of your own, with spark.readStream." if where == f"{sink}.type" else ""
        hint = nearest(str(error["input"]), choices) or other
        return ConfigError(f"{problem} it must be one of {', '.join(choices)}.", hint)
    if error["type"].startswith("bool"):
        return ConfigError(f"{problem} it must be true or false.")
    return ConfigError(f"{problem} {reason[:1].lower()}{reason[1:]}.")
