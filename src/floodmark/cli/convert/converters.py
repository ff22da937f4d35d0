"""What becomes of Kafka Connect's converters, and of the formats of Debezium Server."""

from __future__ import annotations

from collections.abc import Mapping

from floodmark.cli.convert.avro import take_avro
from floodmark.cli.convert.draft import Draft
from floodmark.config.avro import AVRO
from floodmark.config.converters import CLOUD_EVENTS
from floodmark.config.debezium import JSON_CONVERTER

_ENABLE = "schemas.enable"
_SIDES = ("key", "value")
_CONVERTER = "value.converter"
_HEADERS = "header.converter"
_FORMATS = ("json", "jsonbytearray")
"""Debezium Server's formats that are JSON."""
_ONLY_JSON = (
    "keys and values are JSON, or Avro in Confluent's wire format (docs/avro.md), for which Apicurio Registry has "
    "Confluent's interface, too: have consumers read one of these"
)
_REPLACES_NULL = "replace.null.with.default"


def convert_converters(
    draft: Draft, properties: Mapping[str, str], origins: Mapping[str, str], worker: Mapping[str, str] | None
) -> dict[str, str]:
    """Decide whether events carry schemas, by a connector's converters or else those of Kafka Connect's worker.

    Args:
        draft: the pipeline file.
        properties: the connector's.
        origins: the names that they have in the configuration.
        worker: the worker's properties; None: they aren't known.

    Returns:
        The properties that have nothing to do with converters.
    """
    own = {name for name in properties if name.partition(".")[0] in _SIDES and ".converter" in name}
    enabled = {}
    given = dict(origins)
    for side in _SIDES:
        converter = f"{side}.converter"
        # Settings of a converter count only where the converter itself is given.
        place = properties if converter in properties or worker is None else worker
        kind = place.get(converter, JSON_CONVERTER)
        enabled[side] = place.get(f"{converter}.{_ENABLE}", "true").strip().lower()
        prefix = "" if place is properties else "of the worker: "
        for name in () if place is properties else [name for name in own if name.startswith(f"{converter}.")]:
            draft.say(given.pop(name), "no effect", f"it counts only beside '{converter}', which the worker sets")
        if side == "value" and kind.strip() == CLOUD_EVENTS:
            _take_cloud_events(draft, place, origins if place is properties else {}, prefix)
            enabled[side] = ""
            continue
        if kind.strip() == AVRO:
            start = f"{converter}."
            settings = {name.removeprefix(start): value for name, value in place.items() if name.startswith(start)}
            shown = origins if place is properties else {}
            names = {name: shown.get(start + name, f"worker: {start}{name}") for name in settings}
            take_avro(draft, side, settings, names, shown.get(converter, f"worker: {converter}"))
            enabled[side] = ""
            given.pop(f"{start}{_ENABLE}", None)
            continue
        if kind.strip() != JSON_CONVERTER:
            draft.say(origins.get(converter, f"worker: {converter}"), "not supported", f"{prefix}{kind}; {_ONLY_JSON}")
            enabled[side] = "false"
        elif converter in properties:
            draft.say(origins[converter], "no effect", f"{side}s are JSON")
        for name in sorted(own):
            if name.startswith(f"{converter}.") and name in given:
                _take(draft, side, name, properties[name], origins[name], kind.strip() == JSON_CONVERTER)
    unknown = [
        side for side in _SIDES if worker is None and not any(name.startswith(f"{side}.converter") for name in own)
    ]
    for side in unknown:
        other = _SIDES[1 - _SIDES.index(side)]
        enabled[side] = enabled[other] or enabled[side]
    if unknown:
        draft.notes.append(
            "The connector doesn't name both converters, so they are the worker's. JSON with schemas, Kafka Connect's "
            "default, is assumed where nothing says otherwise: give the worker's file with --worker, or correct "
            "schemas.enable."
        )
    if properties.get(_HEADERS) == JSON_CONVERTER and f"{_HEADERS}.{_ENABLE}" not in properties:
        # As Kafka Connect has it where nothing is said.
        draft.source[f"{_HEADERS}.{_ENABLE}"] = "true"
    _decide(draft, enabled, {side: f"{side}.converter.{_ENABLE}" for side in _SIDES}, origins, given)
    return {name: value for name, value in properties.items() if name not in own}


def convert_formats(draft: Draft, properties: Mapping[str, str], origins: Mapping[str, str]) -> None:
    """Do the same by Debezium Server's formats.

    Args:
        draft: the pipeline file.
        properties: those that begin with ``debezium.format.``, by the rest of their names.
        origins: the names that they have in the configuration.
    """
    enabled = {side: properties.get(f"{side}.{_ENABLE}", properties.get(_ENABLE, "true")).lower() for side in _SIDES}
    in_avro: set[str] = set()
    for side in _SIDES:
        kind = properties.get(side)
        if kind is None:
            continue
        if side == "value" and kind.strip().lower() == "cloudevents":
            draft.put(_CONVERTER, CLOUD_EVENTS, origins[side], "mapped", f"{_CONVERTER}: {CLOUD_EVENTS}")
            enabled[side] = ""
        elif kind.strip().lower() == "avro":
            in_avro.add(side)
            settings = {name: name for name in properties if name.partition(".")[0] not in (*_SIDES, "header")}
            own = {name.removeprefix(f"{side}."): name for name in properties if name.startswith(f"{side}.")}
            settings |= own
            taken = {name: properties[place] for name, place in settings.items()}
            take_avro(draft, side, taken, {name: origins[place] for name, place in settings.items()}, origins[side])
            enabled[side] = ""
        elif kind.strip().lower() not in _FORMATS:
            draft.say(origins[side], "not supported", f"'{kind}'; {_ONLY_JSON}")
            enabled[side] = "false"
        else:
            draft.say(origins[side], "no effect", f"{side}s are JSON")
    for name in properties:
        if name.partition(".")[0] == "header":
            continue
        if name.partition(".")[0] in in_avro or (in_avro and not name.startswith((*_SIDES, "header"))):
            continue
        if name.startswith("value.") and draft.source.get(_CONVERTER) == CLOUD_EVENTS:
            option = f"{_CONVERTER}.{name.removeprefix('value.')}"
            draft.put(option, properties[name], origins[name], "mapped", option)
        elif name not in (*_SIDES, "header"):
            draft.say(origins[name], "no effect", "JSON needs no such setting here")
    _take_headers(draft, properties, origins)
    own = {side: f"{side}.{_ENABLE}" for side in _SIDES}
    shared = {side: name if name in origins or _ENABLE not in origins else _ENABLE for side, name in own.items()}
    _decide(draft, enabled, shared, {**{name: f"debezium.format.{name}" for name in own.values()}, **origins}, origins)


def _take_headers(draft: Draft, properties: Mapping[str, str], origins: Mapping[str, str]) -> None:
    """Take Debezium Server's format of headers, which is JSON with schemas if nothing else is said."""
    kind = properties.get("header", _FORMATS[0])
    if kind.strip().lower() not in _FORMATS:
        draft.say(origins["header"], "not supported", f"'{kind}'; headers are texts, or JSON")
        return
    name = next((one for one in (f"header.{_ENABLE}", _ENABLE) if one in properties), "")
    enabled = properties.get(name, "true").strip().lower()
    draft.source |= {_HEADERS: JSON_CONVERTER, f"{_HEADERS}.{_ENABLE}": enabled}
    for given in properties:
        if given == "header":
            draft.say(origins[given], "mapped", f"{_HEADERS}: {JSON_CONVERTER}")
        elif given == f"header.{_ENABLE}":
            draft.say(origins[given], "mapped", f"{_HEADERS}.{_ENABLE}: {enabled}")
        elif given.startswith("header."):
            draft.say(origins[given], "no effect", "JSON needs no such setting here")


def _take(draft: Draft, side: str, name: str, value: str, origin: str, is_json: bool) -> None:
    option = name.removeprefix(f"{side}.converter.")
    if not is_json:
        draft.say(origin, "not supported", f"see {side}.converter")
    elif option == _REPLACES_NULL and side == "value":
        draft.put(name, value, origin)
    elif option == "decimal.format" and value.strip().upper() != "BASE64":
        draft.say(
            origin, "not supported", "decimals are written in Base64: set decimal.handling.mode to double or string"
        )
    elif option != _ENABLE:
        draft.say(origin, "no effect", "JSON needs no such setting here")


def _take_cloud_events(draft: Draft, place: Mapping[str, str], origins: Mapping[str, str], prefix: str) -> None:
    """Take the converter of CloudEvents with its settings, of which its model says which there are."""
    for name, value in place.items():
        if name == _CONVERTER or name.startswith(f"{_CONVERTER}."):
            draft.put(name, value, origins.get(name, f"worker: {name}"), "kept", prefix.rstrip(": "))


def _decide(
    draft: Draft,
    enabled: Mapping[str, str],
    names: Mapping[str, str],
    shown: Mapping[str, str],
    given: Mapping[str, str],
) -> None:
    """Note what becomes of the two properties: one option for both.

    Args:
        draft: the pipeline file.
        enabled: their values, by side.
        names: theirs, by side.
        shown: the names that they have in a configuration.
        given: the same, of those that this one has.
    """
    # CloudEvents have a setting of their own, so that of keys is left; Avro has none.
    chosen = enabled["value"] or enabled["key"]
    if not chosen:
        return
    draft.source[_ENABLE] = chosen
    for side, name in names.items():
        if not enabled[side]:
            continue
        if enabled[side] != chosen:
            remark = f"keys and values both have schemas or not; {_ENABLE} is {chosen}, as for values"
            draft.say(shown.get(name, name), "not supported", remark)
        elif name in given:
            draft.say(given[name], "mapped", f"{_ENABLE}: {chosen}")
