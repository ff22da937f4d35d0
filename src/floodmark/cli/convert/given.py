"""Reads what configures Debezium: a connector of Kafka Connect, a worker of it, or Debezium Server.

A connector comes as Kafka Connect's REST interface takes it (``{"name": …, "config": {…}}``, or the properties alone),
as the file of a standalone worker, or as the resource ``KafkaConnector`` of Strimzi. Which of them a file is, its
content says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import yaml

from floodmark.cli.convert.java_properties import parse_properties
from floodmark.connectors.load import CONNECTOR_CLASS
from floodmark.errors import ConfigError
from floodmark.json_data import Json

SERVER = "debezium."
SOURCE = "debezium.source."
_JSON_KEYS = ("name", "config", "tasks", "type")
"""Those of a connector, as Kafka Connect's REST interface takes and returns it."""
_TOP_KEYS = ("apiVersion:", "kind:", "source:", "debezium:")
"""How lines of the YAML files begin that can be read, or that are pipeline files."""
_KINDS = (
    "Give a connector's JSON or .properties file, Debezium Server's application.properties, or a KafkaConnector of "
    "Strimzi."
)


@dataclass(frozen=True)
class Given:
    """A configuration of Debezium.

    Attributes:
        path: the file.
        kind: of what it is: a connector of Kafka Connect, or Debezium Server.
        name: the connector's name in Kafka Connect; None if the file has none.
        properties: by their names in the file.
    """

    path: Path
    kind: Literal["connector", "server"]
    name: str | None
    properties: Mapping[str, str] = field(repr=False)


def read_given(path: Path) -> Given:
    """Read a configuration.

    Raises:
        ConfigError: the file can't be read, or configures nothing of Debezium.
    """
    text = _text(path)
    if text.lstrip().startswith(("{", "[")):
        return _connector(path, _json(path, text))
    if (resources := _resources(path, text)) is not None:
        if (server := next((one for one in resources if "debezium" in one), None)) is not None:
            return Given(path, "server", None, _flat(path, "debezium", server["debezium"]))
        return _strimzi_connector(path, resources)
    properties = parse_properties(text, path)
    if any(_without_profile(name).startswith(SERVER) for name in properties):
        return Given(path, "server", None, properties)
    if CONNECTOR_CLASS in properties:
        return Given(path, "connector", properties.get("name"), properties)
    if "bootstrap.servers" in properties and any(name.startswith("offset.storage.") for name in properties):
        raise ConfigError(
            f"The file {path} configures a worker of Kafka Connect, not a connector.",
            "Give it with --worker, beside a connector.",
        )
    raise ConfigError(f"The file {path} has neither '{CONNECTOR_CLASS}' nor '{SOURCE}{CONNECTOR_CLASS}'.", _KINDS)


def read_worker(path: Path) -> Mapping[str, str]:
    """Read the configuration of Kafka Connect's workers: its ``.properties``, or the resource ``KafkaConnect``.

    Raises:
        ConfigError: the file can't be read, or configures no worker.
    """
    text = _text(path)
    resources = _resources(path, text)
    if resources is None:
        properties: Mapping[str, str] = parse_properties(text, path)
    else:
        spec = _only(path, resources, "KafkaConnect")
        properties = _texts(path, spec.get("config", {}), "spec.config")
        brokers = spec.get("bootstrapServers")
        properties = {**({"bootstrap.servers": str(brokers)} if brokers else {}), **properties}
    if "bootstrap.servers" not in properties:
        raise ConfigError(
            f"The file {path} has no 'bootstrap.servers', which every worker of Kafka Connect has.",
            "Give the worker's file, such as connect-distributed.properties.",
        )
    return properties


def active(properties: Mapping[str, str], profile: str) -> tuple[dict[str, str], list[str]]:
    """Return Debezium Server's properties in a profile of Quarkus, and the names of those of other profiles.

    Args:
        properties: of the file; those of a profile begin with ``%<profile>.``.
        profile: Quarkus runs programs in ``prod`` unless it is told another one.
    """
    own = f"%{profile}."
    common = {name: value for name, value in properties.items() if not name.startswith("%")}
    given = {name.removeprefix(own): value for name, value in properties.items() if name.startswith(own)}
    others = [name for name in properties if name.startswith("%") and not name.startswith(own)]
    return {**common, **given}, others


def _without_profile(name: str) -> str:
    return name.partition(".")[2] if name.startswith("%") else name


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(f"Cannot read {path}: {getattr(exc, 'strerror', None) or exc}.") from None


def _json(path: Path, text: str) -> Json:
    def unique(pairs: Sequence[tuple[str, Json]]) -> dict[str, Json]:
        found: dict[str, Json] = {}
        for name, value in pairs:
            if found.get(name, value) != value:
                raise ConfigError(f"The file {path} has '{name}' twice, with different values.", "Remove one of them.")
            found[name] = value
        return found

    try:
        content: Json = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as exc:
        reason = f"{exc.msg[:1].lower()}{exc.msg[1:]}"
        raise ConfigError(f"The file {path} is not JSON: line {exc.lineno}, column {exc.colno}: {reason}.") from None
    except RecursionError:
        raise ConfigError(f"The file {path} is nested too deeply.") from None
    return content


def _connector(path: Path, content: Json) -> Given:
    if isinstance(content, list):
        raise ConfigError(f"The file {path} is a list.", "Give one connector's configuration in a file.")
    assert isinstance(content, Mapping), "the text begins with a brace"
    config = content.get("config")
    if isinstance(config, Mapping) and not set(content) <= {*_JSON_KEYS, "connectorName"}:
        others = [name for name in content if name not in _JSON_KEYS]
        raise ConfigError(f"The file {path} has '{others[0]}' beside 'config'.", _KINDS)
    if isinstance(config, Mapping):
        properties = _texts(path, config, "config")
        name = content.get("name", properties.get("name"))
    else:
        properties = _texts(path, content, "")
        name = properties.get("name")
    if CONNECTOR_CLASS not in properties:
        raise ConfigError(
            f"The file {path} has no '{CONNECTOR_CLASS}', which says what connector it configures.", _KINDS
        )
    return Given(path, "connector", None if name is None else str(name), properties)


def _texts(path: Path, content: Json, where: str) -> dict[str, str]:
    """Return properties as texts, as Kafka Connect takes them; those that are null aren't given."""
    if not isinstance(content, Mapping):
        raise ConfigError(f"The file {path} has a '{where}' that is no mapping of properties.", _KINDS)
    for name, value in content.items():
        if isinstance(value, Mapping | list):
            what = f"'{where}.{name}'" if where else f"'{name}'"
            raise ConfigError(f"The file {path} has {what}, which is no plain value.", _KINDS)
    return {
        str(name): str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in content.items()
        if value is not None
    }


def _resources(path: Path, text: str) -> list[Mapping[str, Json]] | None:
    """Return the resources of Kubernetes that a file holds; None if it holds none."""
    if not any(line.startswith(_TOP_KEYS) for line in text.splitlines()):
        return None
    try:
        documents = list(yaml.load_all(text, yaml.BaseLoader))
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ConfigError(f"The file {path} is not YAML: {place}{getattr(exc, 'problem', None) or exc}.") from None
    found = [one for one in documents if isinstance(one, Mapping)]
    if any({"source", "checkpoint"} <= set(one) for one in found):
        raise ConfigError(f"The file {path} is a pipeline file already.", "Start it with floodmark run.")
    return found if any("kind" in one or "debezium" in one for one in found) else None


def _flat(path: Path, name: str, content: Json) -> dict[str, str]:
    """Return the properties of Debezium Server's application.yaml by their whole names."""
    if not isinstance(content, Mapping):
        return _texts(path, {name: content}, "")
    # A tilde stands for a value beside keys below it.
    below = {f"{name}.{key}".removesuffix(".~"): value for key, value in content.items()}
    return {key: text for one, value in below.items() for key, text in _flat(path, one, value).items()}


def _strimzi_connector(path: Path, resources: Sequence[Mapping[str, Json]]) -> Given:
    spec = _only(path, resources, "KafkaConnector")
    resource = next(one for one in resources if one.get("kind") == "KafkaConnector")
    metadata = resource.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    properties = {CONNECTOR_CLASS: str(spec.get("class", "")), **_texts(path, spec.get("config", {}), "spec.config")}
    if tasks := spec.get("tasksMax"):
        properties.setdefault("tasks.max", str(tasks))
    if not properties[CONNECTOR_CLASS]:
        raise ConfigError(f"The file {path} has no 'spec.class', which says what connector it configures.", _KINDS)
    return Given(path, "connector", None if name is None else str(name), properties)


def _only(path: Path, resources: Sequence[Mapping[str, Json]], kind: str) -> Mapping[str, Json]:
    found = [one for one in resources if one.get("kind") == kind]
    if len(found) != 1:
        kinds = ", ".join(str(one["kind"]) for one in resources if "kind" in one)
        raise ConfigError(
            f"The file {path} has {len(found) or 'no'} resources of the kind '{kind}' (it has: {kinds}).", _KINDS
        )
    spec = found[0].get("spec")
    if not isinstance(spec, Mapping):
        raise ConfigError(f"The file {path} has no 'spec'.", _KINDS)
    return spec
