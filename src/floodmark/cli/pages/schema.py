"""Renders the JSON schema of pipeline files, ``docs/pipeline.schema.json``, from the option models.

Run ``python -m floodmark.cli.pages.schema docs/pipeline.schema.json`` after a change to a model. Editors complete and
check a file by it; ``floodmark check`` checks more.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic.fields import FieldInfo

from floodmark.config.model import Options, allowed_values, without_none
from floodmark.connectors.registry import CONNECTORS, ConnectorSpec
from floodmark.sinks.kafka.options import KafkaOptions
from floodmark.sinks.options import MirrorOptions
from floodmark.sinks.relational.options import JdbcOptions
from floodmark.spark.pipelines.file import NAME, PLACE, POLICIES
from floodmark.spark.pipelines.model import FILE_SINKS, KEYS, Pipeline, Sink, Trigger

Schema = dict[str, Any]

_VARIABLE = r"\$\{"
"""A value with a variable, of which only a run of the pipeline shows what it is."""
_WHOLE_NUMBER = r"^-?[0-9][0-9_]*$"
_TRUTH = "^(?:[Tt]rue|TRUE|[Ff]alse|FALSE|on|off|yes|no|[tfyn01])$"
_INTERVAL = r"^\s*(?:[A-Za-z]+\s+)?[0-9]+(?:\.[0-9]+)?\s*[A-Za-z]+(?:\s+[0-9]+\s*[A-Za-z]+)*\s*$"
_SCALAR = ["string", "number", "boolean"]
_DEPTH = 4
_TABLES = ("mirror", "jdbc")
"""Sinks that keep tables, and need one form of the source's rows."""
_MODELS: Mapping[str, type[Options]] = {"mirror": MirrorOptions, "jdbc": JdbcOptions, "kafka": KafkaOptions}
"""Those of the sinks whose options Floodmark knows."""
_MEANINGS = {
    "name": "The query's name; the source's `topic.prefix` if not given.",
    "source": "The source's options: docs/options.md.",
    "sink": "Where the events go.",
    "sinks": "Several sinks by their names, each of which has a query of its own.",
    "errors": "What happens to the other sinks when one fails: `stop` (default) or `isolate`.",
    "sink.type": "Where the events go: Spark's sinks, `mirror` (Delta or Iceberg tables) or `jdbc` (tables of another "
    "database).",
    "sink.path": "Directory of the sinks `json`, `parquet` and `mirror`; for `mirror` also a URI.",
    "sink.format": "Of the sink `mirror`: `delta` or `iceberg`.",
    "sink.options": "Further options of Spark's sink, of the mirror or of the sink `jdbc`.",
    "sink.transform": "A SELECT from the view `events`, for sinks that take events.",
    "checkpoint": "Directory of the query's checkpoint, which no other query uses; with `sinks`, it contains theirs.",
    "trigger": "When a micro-batch starts; without it, when the previous one has ended.",
    "trigger.processingTime": "An interval, such as `10 seconds`.",
    "trigger.availableNow": "Whether the query ends when it has delivered what there is.",
    "trigger.once": "Whether the query ends after one micro-batch.",
    "spark": "Properties of Spark; `spark.master` is `local[*]` if not given.",
}
"""What the keys of the file mean."""


def pipeline_schema(connectors: Iterable[ConnectorSpec]) -> Schema:
    """Return the schema of pipeline files whose source is one of some connectors."""
    specs = list(connectors)
    models: dict[str, type[Options]] = {spec.name: spec.option_model for spec in specs}
    models |= _MODELS
    sections: dict[str, Schema] = {
        "name": _text(),
        "source": _source(specs),
        "sink": _sink(),
        "sinks": {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"pattern": f"^(?:{NAME})$"},
            "additionalProperties": _named_sink(),
        },
        "errors": _choice(POLICIES),
        "checkpoint": {"type": "string", "minLength": 1},
        "trigger": _trigger(),
        "spark": {
            "type": "object",
            "propertyNames": {"pattern": r"^spark\."},
            "additionalProperties": _text(),
        },
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A pipeline file of Floodmark",
        "type": "object",
        "properties": {name: {"description": _MEANINGS[name], **sections[name]} for name in KEYS},
        "required": [name for name, field in Pipeline.model_fields.items() if field.is_required() and name != "sink"],
        "oneOf": [{"required": ["sink"], "not": {"required": ["errors"]}}, {"required": ["sinks"]}],
        "additionalProperties": False,
        "allOf": [_form_of_rows(sink, "arrow") for sink in _TABLES] + [_form_of_rows("kafka", "events")],
        "definitions": {name: _options(model) for name, model in models.items()},
    }


def render(connectors: Iterable[ConnectorSpec] = CONNECTORS.values()) -> str:
    """Return the schema as text."""
    return _laid_out(pipeline_schema(connectors)) + "\n"


def _laid_out(value: object, depth: int = 0) -> str:
    """Return JSON in which an option is a line, so that changes can be read."""
    if not isinstance(value, dict) or depth == _DEPTH or not value:
        return json.dumps(value, ensure_ascii=False)
    indent = "  " * (depth + 1)
    lines = [f"{indent}{json.dumps(key)}: {_laid_out(item, depth + 1)}" for key, item in value.items()]
    return "{\n" + ",\n".join(lines) + f"\n{'  ' * depth}}}"


def _form_of_rows(sink: str, form: str) -> Schema:
    """Let a sink have only one value of the source's option ``format``."""
    return {
        "if": {"properties": {"sink": {"properties": {"type": {"const": sink}}, "required": ["type"]}}},
        "then": {"properties": {"source": {"properties": {"format": _choice([form])}}}},
    }


def _source(specs: list[ConnectorSpec]) -> Schema:
    classes = [spec.debezium_class for spec in specs if spec.debezium_class]
    named = {
        "connector": {"description": "Which database to capture.", **_choice([spec.name for spec in specs])},
        "connector.class": {"description": "Debezium's name of the connector.", **_choice(classes)},
    }
    chosen = []
    for spec in specs:
        chosen.append(_if("connector", spec.name, {"$ref": f"#/definitions/{spec.name}"}))
        if spec.debezium_class:
            chosen.append(_if("connector.class", spec.debezium_class, {"$ref": f"#/definitions/{spec.name}"}))
    return {
        "type": "object",
        "properties": named,
        "anyOf": [{"required": [name]} for name in named],
        "allOf": chosen,
    }


def _sink() -> Schema:
    kinds = allowed_values(Sink.model_fields["type"])
    formats = _values(Sink.model_fields["format"].annotation)
    keys: dict[str, Schema] = {
        "type": _choice(kinds),
        "path": {"type": "string", "minLength": 1},
        "format": _choice(formats),
        "options": {"type": "object", "additionalProperties": _text()},
        "transform": {"type": "string", "minLength": 1},
    }
    rules = []
    for kind in kinds:
        rule: Schema = {"required": ["path"]} if kind in FILE_SINKS else {"properties": {"path": False}}
        if kind in _MODELS:
            rule.setdefault("properties", {})["options"] = {"$ref": f"#/definitions/{kind}"}
        if kind in _TABLES:
            rule["properties"]["transform"] = False
        if kind != "mirror":
            rule.setdefault("properties", {})["format"] = False
        if kind == "kafka":
            rule["allOf"] = [{"properties": {"options": {"required": ["kafka.bootstrap.servers"]}}}]
        if kind in ("kafka", "jdbc"):
            rule["required"] = ["options"]
        rules.append(_if("type", kind, rule))
    return {
        "type": "object",
        "properties": {name: {"description": _MEANINGS[f"sink.{name}"], **keys[name]} for name in Sink.model_fields},
        "required": [name for name, field in Sink.model_fields.items() if field.is_required()],
        "additionalProperties": False,
        "allOf": rules,
    }


def _named_sink() -> Schema:
    """Return the schema of one of several sinks, which may have options of the source and a trigger of its own."""
    found = _sink()
    own = {
        "source": {
            "description": "Options of the source that this sink overrides.",
            "type": "object",
            "propertyNames": {"not": {"enum": list(PLACE)}},
            "additionalProperties": {"type": [*_SCALAR, "array"], "items": _text()},
        },
        "trigger": {"description": _MEANINGS["trigger"], **_trigger()},
    }
    return {**found, "properties": {**found["properties"], **own}}


def _trigger() -> Schema:
    keys = {
        "processingTime": {"type": "string", "pattern": f"{_INTERVAL}|{_VARIABLE}"},
        "availableNow": _truth_value(),
        "once": _truth_value(),
    }
    names = [field.alias or name for name, field in Trigger.model_fields.items()]
    both = [
        {"properties": {name: {"not": {"enum": [False, "false"]}} for name in pair}, "required": list(pair)}
        for pair in combinations(names, 2)
    ]
    return {
        "type": "object",
        "properties": {name: {"description": _MEANINGS[f"trigger.{name}"], **keys[name]} for name in names},
        "additionalProperties": False,
        "not": {"anyOf": both},
    }


def _if(key: str, value: str, then: Schema) -> Schema:
    return {"if": {"properties": {key: {"const": value}}, "required": [key]}, "then": then}


def _options(model: type[Options]) -> Schema:
    """Return the schema of a mapping of options."""
    properties: dict[str, Schema] = {}
    patterns: dict[str, Schema] = {}
    required = []
    converters = ""
    for field in model.model_fields.values():
        name = field.alias or ""
        schema = {"description": field.description or "", **_value(field)}
        if field.is_required() and name != "connector":
            required.append(name)
        if name.startswith("<"):
            converters = name
        elif "<" in name:
            patterns[_pattern(name)] = schema
        else:
            properties[name] = schema
    if "connector" in properties:
        properties["connector.class"] = {}
        # The source's own schema says what it may be.
        properties["connector"] = {}
    for name, foreign in model.accepted.items():
        reason = f"An option of Debezium without effect: {foreign.reason}."
        schema = {"description": reason, **(_text() if foreign.values is None else _texts(foreign.values))}
        if "<" in name:
            patterns.setdefault(_pattern(name), schema)
        else:
            properties.setdefault(name, schema)
    found: Schema = {"type": "object", "properties": properties, "required": required}
    if patterns:
        found["patternProperties"] = patterns
    if not converters:
        return {**found, "additionalProperties": False}
    known: Schema = {"anyOf": [{"enum": list(properties)}, *({"pattern": pattern} for pattern in patterns)]}
    # A converter's options begin with the name that the option `converters` gives it.
    return {**found, "if": {"not": {"required": ["converters"]}}, "then": {"propertyNames": known}}


def _pattern(name: str) -> str:
    """Return a regular expression for the names of a family of options."""
    return f"^{'.+'.join(re.escape(part) for part in re.split('<[^>]*>', name))}$"


def _value(field: FieldInfo) -> Schema:
    """Return the schema of an option's values."""
    choices = allowed_values(field)
    annotation = without_none(field.annotation)
    schema: Schema
    if choices:
        schema = _choice(choices)
    elif annotation is bool:
        schema = _truth_value()
    elif annotation is int:
        limits = {"minimum": _limit(field, "ge"), "maximum": _limit(field, "le")}
        schema = {"type": ["integer", "string"], "pattern": f"{_WHOLE_NUMBER}|{_VARIABLE}"}
        schema |= {name: limit for name, limit in limits.items() if limit is not None}
    elif get_origin(annotation) is tuple:
        schema = {"type": [*_SCALAR, "array"], "items": _text()}
    else:
        schema = _text()
        pattern = _limit(field, "pattern")
        if pattern is not None:
            schema["pattern"] = f"{pattern}|{_VARIABLE}"
    if isinstance(field.default, str | int) and field.default != "":
        schema["default"] = field.default
    return schema


def _limit(field: FieldInfo, name: str) -> Any:
    return next((found for item in field.metadata if (found := getattr(item, name, None)) is not None), None)


def _values(annotation: object) -> list[str]:
    return list(get_args(without_none(annotation)))


def _text() -> Schema:
    """Return the schema of text: YAML's other values are read as they are written."""
    return {"type": _SCALAR}


def _truth_value() -> Schema:
    return {"type": ["boolean", "string", "integer"], "pattern": f"{_TRUTH}|{_VARIABLE}", "minimum": 0, "maximum": 1}


def _choice(values: Iterable[str]) -> Schema:
    return {"anyOf": [{"enum": list(values)}, {"type": "string", "pattern": _VARIABLE}]}


def _texts(values: Iterable[str]) -> Schema:
    """Return the schema of some texts, which YAML may read as truth values."""
    truth: Mapping[str, bool] = {"true": True, "false": False}
    found = list(values)
    return {"enum": [*found, *(truth[value] for value in found if value in truth)]}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
