"""Reads ``pipeline.yaml``: one query, or one for each of several sinks, which share nothing but the Spark application.

So each sink is where it is, and one that fails or is slow keeps nothing from the others. What makes them apart is
derived from the sinks' names: directories below ``checkpoint`` and ``state.dir``, and what a connector's queries can't
share, such as a replication slot.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations, product
from pathlib import Path
from typing import Literal

from floodmark.config.model import nearest
from floodmark.connectors.load import load_options
from floodmark.errors import ConfigError
from floodmark.json_data import Json
from floodmark.spark.pipelines.model import (
    KEYS,
    Pipeline,
    Sink,
    Trigger,
    names_of,
    parse_pipeline,
    refuse_unknown,
    section_texts,
    validated,
)
from floodmark.spark.pipelines.places import lies_in
from floodmark.spark.pipelines.text import read_content

ErrorPolicy = Literal["stop", "isolate"]
POLICIES: tuple[ErrorPolicy, ...] = ("stop", "isolate")
PLACE = ("connector", "connector.class", "database.hostname", "database.port", "database.dbname", "state.dir")
"""Options of the source that a sink doesn't override: where the source and its state are."""
NAME = "[a-z][a-z0-9_]{0,29}"
"""What names of sinks look like."""
_OF_CHECKPOINTS = frozenset({"commits", "metadata", "offsets", "sources", "state"})
"""What a query's checkpoint contains: a sink of such a name would make that of all sinks look like a query's."""


@dataclass(frozen=True)
class PipelineFile:
    """A pipeline file.

    Attributes:
        pipelines: a query for each sink, in the file's order.
        errors: what happens to the others when one of several fails: ``stop`` or ``isolate``.
        checkpoint: the file's key: with several sinks, the directory that contains their checkpoints.
    """

    pipelines: tuple[Pipeline, ...]
    errors: ErrorPolicy
    checkpoint: str

    @property
    def several(self) -> bool:
        """Whether the sinks have names, though there may be only one."""
        return bool(self.pipelines[0].label)

    @property
    def title(self) -> str:
        """The pipeline's name."""
        return self.pipelines[0].title

    @property
    def labels(self) -> str:
        """The names of the sinks, for errors."""
        return ", ".join(one.label for one in self.pipelines)

    @property
    def only(self) -> Pipeline:
        """The query of a file with one sink.

        Raises:
            ConfigError: there are several.
        """
        if len(self.pipelines) > 1:
            raise ConfigError(f"The pipeline file has several sinks: {self.labels}.", "Name one of them.")
        return self.pipelines[0]

    def named(self, label: str | None) -> tuple[Pipeline, ...]:
        """Return the query of a sink; all if no name is given.

        Raises:
            ConfigError: there is no such sink.
        """
        if label is None:
            return self.pipelines
        if not self.several:
            raise ConfigError("Option --sink is for pipeline files with 'sinks'; this one has one sink without a name.")
        found = tuple(one for one in self.pipelines if one.label == label)
        if not found:
            hint = nearest(label, [one.label for one in self.pipelines])
            raise ConfigError(f"The pipeline file has no sink '{label}': its sinks are {self.labels}.", hint)
        return found


def load_file(path: Path, environment: Mapping[str, str] = os.environ) -> PipelineFile:
    """Read a pipeline file.

    Every scalar is read as its literal text in the file, so ``0123`` stays ``0123``. A list
    becomes a comma-separated option value. ``${NAME}`` is replaced by an environment variable;
    ``$${NAME}`` stays ``${NAME}``.

    Raises:
        ConfigError: the file is missing or not YAML, or a key or value in it is not allowed.
    """
    return parse_file(read_content(path, ", ".join(KEYS)), environment)


def parse_file(content: Mapping[str, Json], environment: Mapping[str, str] = os.environ) -> PipelineFile:
    """Read the content of a pipeline file; see ``load_file``.

    Raises:
        ConfigError: a key or value is not allowed.
    """
    refuse_unknown(KEYS, content, "")
    if "sinks" not in content:
        if "errors" in content:
            raise ConfigError(
                "Key 'errors' is not allowed without 'sinks': it says what happens to the other sinks when one fails.",
                "Leave it out.",
            )
        one = parse_pipeline(content, environment)
        return PipelineFile((one,), "stop", one.checkpoint)
    if "sink" in content:
        raise ConfigError(
            "Keys 'sink' and 'sinks' of the pipeline file exclude each other.",
            "Write every sink in 'sinks', under a name of its own.",
        )
    texts = section_texts(content, KEYS, environment)
    sinks = texts.pop("sinks")
    if not isinstance(sinks, Mapping) or not sinks:
        raise ConfigError(
            "Key 'sinks' in the pipeline file must be a mapping of names to sinks.",
            "Write {lake: {type: mirror, path: /data/lake}, events: {type: json, path: /data/events}}, for example.",
        )
    errors = _policy(texts.pop("errors", "stop"))
    shared = _shared(texts)
    pipelines = tuple(_pipeline(str(name), sink, shared) for name, sink in sinks.items())
    _refuse_common_paths(pipelines)
    _refuse_common_places(pipelines)
    return PipelineFile(pipelines, errors, str(shared["checkpoint"]))


def below(directory: str, name: str) -> str:
    """Return a directory's subdirectory; a URI's parameters stay at its end."""
    path, mark, parameters = directory.partition("?") if "://" in directory else (directory, "", "")
    return f"{path.rstrip('/')}/{name}{mark}{parameters}"


def _policy(given: Json) -> ErrorPolicy:
    for policy in POLICIES:
        if given == policy:
            return policy
    shown = f" has the value '{given}', which" if isinstance(given, str) else ""
    hint = nearest(given, POLICIES) if isinstance(given, str) else ""
    raise ConfigError(f"Key 'errors'{shown} is not allowed: it must be one of {', '.join(POLICIES)}.", hint)


def _shared(texts: dict[str, Json]) -> dict[str, Json]:
    """Check what all sinks share, as a file with a sink that nothing is asked of, and return it."""
    if isinstance(texts.get("trigger"), Mapping):
        refuse_unknown(names_of(Trigger), texts["trigger"], "trigger.")  # type: ignore[arg-type]
    validated({**texts, "sink": {"type": "noop"}})
    return texts


def _pipeline(name: str, sink: Json, shared: Mapping[str, Json]) -> Pipeline:
    """Return the query of a sink."""
    key = f"sinks.{name}"
    if not re.fullmatch(NAME, name) or name in _OF_CHECKPOINTS:
        raise ConfigError(
            f"Key 'sinks' in the pipeline file has the name '{name}', which is not allowed: it must be a letter, then "
            f"up to 29 letters, digits or '_', all small, and none of {', '.join(sorted(_OF_CHECKPOINTS))}.",
            "It becomes a part of directories' names and, with PostgreSQL, of the slot's.",
        )
    if not isinstance(sink, Mapping):
        raise ConfigError(
            f"Key '{key}' in the pipeline file must be a mapping.",
            "Write where the events go, such as {type: parquet, path: /data/events}.",
        )
    refuse_unknown([*names_of(Sink), "source", "trigger"], sink, f"{key}.")
    own = _section(sink, "source", key)
    trigger = _section(sink, "trigger", key)
    refuse_unknown(names_of(Trigger), trigger, f"{key}.trigger.")
    try:
        texts = {
            **shared,
            "label": name,
            "source": _source(key, name, own, _section(shared, "source", "")),
            "sink": {part: value for part, value in sink.items() if part not in ("source", "trigger")},
            "checkpoint": below(str(shared["checkpoint"]), name),
            **({"trigger": trigger} if trigger else {}),
        }
        return validated(texts, key)
    except ConfigError as exc:
        # Those of options don't tell whose they are.
        raise exc if exc.what.startswith("Key ") else ConfigError(f"Sink '{name}': {exc.what}", exc.cure) from None


def _section(of: Mapping[str, Json], part: str, key: str) -> Mapping[str, Json]:
    found = of.get(part, {})
    if not isinstance(found, Mapping):
        where = f"{key}.{part}" if key else part
        raise ConfigError(f"Key '{where}' in the pipeline file must be a mapping.")
    return found


def _source(key: str, name: str, own: Mapping[str, Json], shared: Mapping[str, Json]) -> dict[str, Json]:
    """Return the options of the source for a sink: those of all, what is derived from its name, and its own."""
    for option in own:
        if option.lower() in PLACE:
            raise ConfigError(
                f"Key '{key}.source' must not have '{option}': all sinks of a file have the same source.",
                "Write another pipeline file for another source.",
            )
    options = load_options({option: str(value) for option, value in _merged(shared, own).items()})
    derived = {**options.place_of(name), "state.dir": below(options.state_dir, name)}
    return _merged(shared, derived, own)


def _merged(*layers: Mapping[str, Json]) -> dict[str, Json]:
    """Return options of which later ones override earlier ones, whatever the case of their names."""
    merged: dict[str, Json] = {}
    for layer in layers:
        given = {option.lower() for option in layer}
        merged = {**{option: value for option, value in merged.items() if option.lower() not in given}, **layer}
    return merged


def _refuse_common_paths(pipelines: tuple[Pipeline, ...]) -> None:
    """Refuse directories of a sink that are another one's, or inside it; ``check_places`` looks at those of one."""
    for one, other in permutations(pipelines, 2):
        for (what, inner), (where, outer) in product(_directories(one), _directories(other)):
            if how := lies_in(inner, outer):
                raise ConfigError(
                    f"{what} {how} {where[:1].lower()}{where[1:]}.",
                    "Give each a directory of its own, side by side.",
                )


def _directories(pipeline: Pipeline) -> list[tuple[str, str]]:
    """Return the directories of a sink, each with what it is."""
    label = pipeline.label
    path = [] if pipeline.sink.path is None else [(f"Key 'sinks.{label}.path'", pipeline.sink.path)]
    own = [(f"The checkpoint of the sink '{label}'", pipeline.checkpoint)]
    own.append((f"The state.dir of the sink '{label}'", pipeline.options.state_dir))
    return [*path, *own]


def _refuse_common_places(pipelines: tuple[Pipeline, ...]) -> None:
    """Refuse two sinks whose queries would have something that only one query can have."""
    seen: dict[tuple[str, str], str] = {}
    for one in pipelines:
        for place in one.options.unshared.items():
            if place in seen:
                option, value = place
                raise ConfigError(
                    f"Sinks '{seen[place]}' and '{one.label}' both have '{option}' = '{value}', which only one query "
                    "can have.",
                    f"Write another value of {option} in 'sinks.{one.label}.source'.",
                )
            seen[place] = one.label
