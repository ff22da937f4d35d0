"""Makes a pipeline file of a configuration of Debezium."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from floodmark.cli.convert.converters import convert_converters, convert_formats
from floodmark.cli.convert.draft import Draft, Outcome
from floodmark.cli.convert.given import SERVER, SOURCE, Given, active
from floodmark.cli.convert.references import References, Variable
from floodmark.cli.convert.sinks import settle_sink, write_as_server, write_to_kafka
from floodmark.cli.convert.source import STATE_DIR, settle, take_source
from floodmark.cli.convert.stores import import_command
from floodmark.cli.convert.transforms import convert_transforms
from floodmark.config.debezium import ACCEPTED
from floodmark.config.model import nearest
from floodmark.connectors.load import CONNECTOR_CLASS, connector_classes
from floodmark.connectors.registry import ConnectorSpec, spec_of
from floodmark.errors import ConfigError
from floodmark.json_data import Json
from floodmark.spark.pipelines.file import parse_file

FAILED = ("not supported", "missing")
"""Results with which the pipeline doesn't do all that Debezium does."""
_SINK, _FORMAT = "debezium.sink.", "debezium.format."
_OF_TRANSFORMS = ("debezium.transforms", "debezium.predicates")
_OTHER = re.compile(r"io\.debezium\.connector\.(\w+)\.")
_WORKER_TAKEN = ("bootstrap.servers", "producer.", "topic.creation.enable")
_STORES = ("offset.storage.topic", "offset.storage.file.filename")
_PLUGIN = "plugin.name"


@dataclass(frozen=True)
class Target:
    """What to make.

    Attributes:
        pipeline: the pipeline file's path, for the commands that are shown.
        directory: where its query keeps its state and its checkpoint.
        profile: of Quarkus, which decides which of Debezium Server's properties count.
    """

    pipeline: str
    directory: str | None = None
    profile: str = "prod"


@dataclass(frozen=True)
class Conversion:
    """A pipeline file, and what has become of each property.

    Attributes:
        content: the file's.
        connector: the connector.
        outcomes: of the properties, in their order; those of the worker begin with ``worker:``.
        variables: the environment variables that the file needs.
        notes: what else to know.
        command: takes the connector's offset over; None if that can't be done.
    """

    content: Mapping[str, Json]
    connector: str
    outcomes: Sequence[Outcome]
    variables: Sequence[Variable]
    notes: Sequence[str]
    command: str | None

    @property
    def complete(self) -> bool:
        """Whether the pipeline does all that Debezium does."""
        return not any(one.result in FAILED for one in self.outcomes)


def convert(
    given: Given, target: Target, worker: Mapping[str, str] | None = None, worker_path: Path | None = None
) -> Conversion:
    """Convert a configuration.

    Args:
        given: the configuration.
        target: what to make.
        worker: the properties of Kafka Connect's worker; None: they aren't known.
        worker_path: the file that they come from.

    Raises:
        ConfigError: Floodmark has no such connector.
    """
    if given.kind == "server":
        return _convert_server(given, target)
    spec = _spec(given.path, given.properties[CONNECTOR_CLASS])
    draft = Draft(spec, References(_providers(worker)), given.properties)
    properties = {name: value for name, value in given.properties.items() if value.strip() or "password" in name}
    origins = {name: name for name in given.properties}
    for name in [name for name in given.properties if name not in properties]:
        draft.say(name, "no effect", "it is empty")
    directory = _directory(target, properties, given.name)
    draft.say(CONNECTOR_CLASS, "mapped", f"connector: {spec.name}")
    if "name" in properties:
        draft.say("name", "mapped", "name")
    rest = {name: value for name, value in properties.items() if name not in (CONNECTOR_CLASS, "name")}
    rest = convert_converters(draft, rest, origins, worker)
    rest = write_to_kafka(draft, rest, origins, worker)
    rest = convert_transforms(draft, rest, origins)
    take_source(draft, rest, origins)
    _tell_of_worker(draft, worker)
    command = import_command(draft, target.pipeline, given.properties, given.name or "NAME", worker, worker_path)
    return _finished(draft, directory, given.name, command)


def _convert_server(given: Given, target: Target) -> Conversion:
    properties, others = active(given.properties, target.profile)
    origins = {name: name if name in given.properties else f"%{target.profile}.{name}" for name in properties}
    kind = properties.get(f"{SOURCE}{CONNECTOR_CLASS}")
    if kind is None:
        raise ConfigError(
            f"The file {given.path} has no '{SOURCE}{CONNECTOR_CLASS}', which says what connector it configures."
        )
    draft = Draft(_spec(given.path, kind), References(server=properties), given.properties)
    source, names = _below(properties, origins, SOURCE)
    for prefix in _OF_TRANSFORMS:
        own, own_names = _below(properties, origins, prefix)
        family = prefix.removeprefix(SERVER)
        source |= {f"{family}{name}": value for name, value in own.items()}
        names |= {f"{family}{name}": origin for name, origin in own_names.items()}
    directory = _directory(target, source, None)
    draft.say(names[CONNECTOR_CLASS], "mapped", f"connector: {draft.spec.name}")
    _convert_formats(draft, properties, origins, source, names)
    write_as_server(draft, *_below(properties, origins, _SINK), directory)
    rest = {name: value for name, value in source.items() if name != CONNECTOR_CLASS}
    take_source(draft, convert_transforms(draft, rest, names), names)
    known = (SOURCE, _SINK, _FORMAT, *_OF_TRANSFORMS)
    for name in [name for name in properties if not name.startswith(known)]:
        _tell_of_server(draft, name, origins[name], known)
    for name in others:
        draft.say(name, "no effect", f"it is of another profile than '{target.profile}' (--profile)")
    return _finished(draft, directory, None, import_command(draft, target.pipeline, source, None, None, None))


def _convert_formats(
    draft: Draft,
    properties: Mapping[str, str],
    origins: Mapping[str, str],
    source: dict[str, str],
    names: Mapping[str, str],
) -> None:
    """Take the formats, which some write as a connector's converters."""
    formats, of_formats = _below(properties, origins, _FORMAT)
    for side in ("key", "value"):
        written = f"{side}.converter.schemas.enable"
        value = source.pop(written, None)
        if value is None:
            continue
        name = f"{side}.schemas.enable"
        if name in formats:
            draft.say(names[written], "no effect", f"'{of_formats[name]}' is given, too")
        else:
            formats[name], of_formats[name] = value, names[written]
    convert_formats(draft, formats, of_formats)


def _below(
    properties: Mapping[str, str], origins: Mapping[str, str], prefix: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the properties with a prefix by the rest of their names, and the names that they have in the file."""
    own = {name.removeprefix(prefix): name for name in properties if name.startswith(prefix)}
    return {rest: properties[name] for rest, name in own.items()}, {rest: origins[name] for rest, name in own.items()}


def _spec(path: Path, kind: str) -> ConnectorSpec:
    """Return the connector that Debezium's class, or Kafka Connect's short name of it, stands for."""
    classes = connector_classes()
    short = {alias: name for one, name in classes.items() for alias in _aliases(one)}
    connector = classes.get(kind.strip(), short.get(kind.strip()))
    if connector is not None:
        spec = spec_of(connector)
        assert spec is not None, "`connector_classes` has only connectors that there are"
        return spec
    reads = "Floodmark reads the databases of " + ", ".join(classes) + "."
    if "Sink" in kind or "sink" in kind:
        raise ConfigError(
            f"The file {path} configures {kind}, a sink connector, which reads topics.",
            "A pipeline replaces it together with the source's connector: convert that one, and choose its sink.",
        )
    other = _OTHER.match(kind)
    close = nearest(kind, list(classes), 0.9)
    of_other = f"Debezium's connector for {other[1]}, which Floodmark does not read" if other and not close else ""
    what = of_other or "which Floodmark does not have"
    raise ConfigError(f"The file {path} configures the connector '{kind}', {what}.", close or reads)


def _aliases(name: str) -> tuple[str, str]:
    """Return the short names that Kafka Connect takes for a class."""
    simple = name.rpartition(".")[2]
    return simple, simple.removesuffix("Connector")


def _providers(worker: Mapping[str, str] | None) -> tuple[str, ...]:
    """Return the names of a worker's providers that read environment variables."""
    ending = "EnvVarConfigProvider"
    named = {
        name.split(".")[2]: value for name, value in (worker or {}).items() if name.startswith("config.providers.")
    }
    return tuple(name for name, value in named.items() if value.strip().endswith(ending))


def _directory(target: Target, properties: Mapping[str, str], name: str | None) -> str:
    if target.directory is not None:
        return target.directory.rstrip("/")
    found = properties.get("topic.prefix", properties.get("database.server.name", name or "pipeline"))
    return str(Path.cwd() / re.sub(r"[^\w.-]", "_", found))


def _tell_of_worker(draft: Draft, worker: Mapping[str, str] | None) -> None:
    for name in worker or {}:
        origin = f"worker: {name}"
        if draft.told(origin) or name.startswith(_WORKER_TAKEN):
            continue
        if name in _STORES:
            draft.say(origin, "mapped", "the command below")
        elif name.startswith("config.providers"):
            draft.say(origin, "no effect", "the pipeline file has environment variables instead")
        elif name.partition(".")[0] in ("key", "value"):
            draft.say(origin, "mapped", "schemas.enable")
        else:
            draft.say(origin, "no effect", ACCEPTED["offset.storage"].reason)


def _tell_of_server(draft: Draft, name: str, origin: str, known: Sequence[str]) -> None:
    if name.startswith("quarkus."):
        draft.say(
            origin, "no effect", "there is no Quarkus; the environment variable FLOODMARK_LOG sets what is logged"
        )
    elif name.startswith(SERVER):
        hint = nearest(name, [f"{SOURCE}{option}" for option in draft.spec.option_model.names()], 0.8)
        begins = ", ".join(f"{prefix}…" for prefix in known)
        draft.say(origin, "no effect", f"Debezium Server's options begin with {begins}. {hint}".strip())
    else:
        draft.say(origin, "no effect", "Debezium Server reads no such property; others may refer to it")


def _finished(draft: Draft, directory: str, name: str | None, command: str | None) -> Conversion:
    draft.source[STATE_DIR] = f"{directory}/state"
    settle(draft)
    settle_sink(draft)
    if draft.spec.name == "postgres" and _PLUGIN not in draft.source:
        draft.notes.append(
            "A slot that Debezium has made with another plug-in than pgoutput can't be read, and Debezium's default is "
            "decoderbufs: name another slot.name then, and begin with a snapshot."
        )
    content = _content(draft, directory, name)
    _prove(draft, content)
    # Those of options that were refused aren't needed.
    text = json.dumps(content)
    variables = tuple(one for name, one in draft.references.variables.items() if f"${{{name}}}" in text)
    return Conversion(content, draft.spec.name, draft.outcomes, variables, tuple(draft.notes), command)


def _content(draft: Draft, directory: str, name: str | None) -> dict[str, Json]:
    sink = draft.sink
    parts: dict[str, Json] = {
        "type": sink.type,
        **({"path": sink.path} if sink.path is not None else {}),
        **({"options": dict(sink.options)} if sink.options else {}),
    }
    return {
        **({"name": name} if name is not None else {}),
        "source": draft.ordered_source,
        "sink": parts,
        "checkpoint": f"{directory}/checkpoint",
    }


def _prove(draft: Draft, content: Mapping[str, Json]) -> None:
    """Note what is wrong with a pipeline file whose parts are right."""
    if not all(draft.references.knows_all(value) for value in draft.source.values()):
        # What stands for an unknown value may be refused.
        return
    try:
        parse_file(content, draft.references.environment)
    except ConfigError as exc:
        draft.say("pipeline file", "not supported", str(exc))
