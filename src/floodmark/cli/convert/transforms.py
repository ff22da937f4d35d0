"""What becomes of Kafka Connect's transforms and predicates, and what to write instead of those that aren't there."""

from __future__ import annotations

from collections.abc import Mapping

from floodmark.cli.convert.draft import Draft
from floodmark.config.debezium import NO_JVM
from floodmark.config.expressions.groovy import as_sql
from floodmark.config.model import split_list
from floodmark.config.transforms.kinds import PREDICATES, TRANSFORMS
from floodmark.config.transforms.scripting import LANGUAGE, ContentBasedRouterOptions, FilterOptions, ScriptingOptions

TRANSFORM, PREDICATE = "transforms", "predicates"
_CONNECT = "org.apache.kafka.connect.transforms."
_DEBEZIUM = "io.debezium.transforms."
_UNWRAP = f"{_DEBEZIUM}ExtractNewRecordState"
_NEW_ROUTER = f"{_DEBEZIUM}ToLogicalTopicRouter"
_OTHER_TYPES = {f"{_DEBEZIUM}UnwrapFromEnvelope": _UNWRAP, _NEW_ROUTER: f"{_DEBEZIUM}ByLogicalTableRouter"}
"""Names that types had in Debezium's first versions, or have since 3.7, and those that they have here."""
_REPLACED_FIELDS = {"blacklist": "exclude", "whitelist": "include"}
_OTHER_OPTIONS: Mapping[str, Mapping[str, str]] = {
    _NEW_ROUTER: {"logical.destination.cache.size": "logical.table.cache.size"},
    **{f"{_CONNECT}ReplaceField${side}": _REPLACED_FIELDS for side in ("Key", "Value")},
}
"""Options of types with another name since Debezium 3.7, or until Kafka 2.6, and the name that they have here."""
_KEY_FIELD, _NEW_KEY_FIELD = "key.field.name", "__dbz__sourceIdentifier"
"""An option of it that has another default since 3.7."""
_MODE = "delete.tombstone.handling.mode"
_LEGACY = ("drop.tombstones", "delete.handling.mode")
_MODES: Mapping[tuple[str, bool], tuple[str, str]] = {
    ("drop", True): ("drop", ""),
    ("drop", False): ("delete-to-tombstone", ""),
    ("none", True): ("tombstone", ""),
    ("none", False): (
        "delete-to-tombstone",
        "a delete was a record with the value null and a tombstone; now only this",
    ),
    ("rewrite", True): ("rewrite", ""),
    ("rewrite", False): ("rewrite-with-tombstone", ""),
}
"""Today's mode by ``delete.handling.mode`` and ``drop.tombstones``, and what differs.

Source: Debezium 2.7's ``LegacyDeleteHandlingStrategy`` beside ``DefaultDeleteHandlingStrategy``.
"""
_SELECT = "write a SELECT in sink.transform"
_TIMES = "set time.precision.mode, or " + _SELECT
_ROUTE = f"{_SELECT} that returns another topic"
_INSTEAD: Mapping[str, str] = {
    f"{_CONNECT}DropHeaders": f"{_SELECT} without headers",
    f"{_CONNECT}Filter": f"{_SELECT} with a WHERE",
    f"{_CONNECT}Flatten": f"{_SELECT}, or flatten with ExtractNewRecordState",
    f"{_CONNECT}SetSchemaMetadata": "set schema.name.adjustment.mode",
    f"{_CONNECT}TimestampConverter": _TIMES,
    f"{_CONNECT}TimestampRouter": f"{_ROUTE}, such as concat(topic, date_format(source_ts, 'yyyyMMdd')) AS topic",
    f"{_DEBEZIUM}SchemaChangeEventFilter": f"set include.schema.changes=false, or {_SELECT} with a WHERE",
}
"""What to do instead of types that there aren't."""
_PASSES_ALL = (f"{_DEBEZIUM}openlineage.OpenLineage",)
"""Types that leave records as they are: this one tells others of them."""
_SCRIPTED: Mapping[str, type[ScriptingOptions]] = {
    f"{_DEBEZIUM}Filter": FilterOptions,
    f"{_DEBEZIUM}ContentBasedRouter": ContentBasedRouterOptions,
}
"""Types that evaluate scripts in Debezium, and SQL here."""
_SPARKS = "an expression in Spark's SQL, such as"
_ANY = f"{_SELECT}, or transform the events in a program of your own"


def convert_transforms(draft: Draft, properties: Mapping[str, str], origins: Mapping[str, str]) -> dict[str, str]:
    """Take transforms and predicates into a draft.

    Args:
        draft: the pipeline file.
        properties: the connector's.
        origins: the names that they have in the configuration.

    Returns:
        The other properties.
    """
    members = {name: value for name, value in properties.items() if name.partition(".")[0] in (TRANSFORM, PREDICATE)}
    names = split_list(properties.get(TRANSFORM, ""))
    conditions = split_list(properties.get(PREDICATE, ""))
    transforms = {name: _members(members, TRANSFORM, name) for name in names}
    predicates = {name: _members(members, PREDICATE, name) for name in conditions}
    kept = [name for name in names if _keep(draft, name, transforms, predicates, origins)]
    used = [own["predicate"].strip() for name, own in transforms.items() if name in kept and "predicate" in own]
    for family, chosen, given in (
        (TRANSFORM, kept, names),
        (PREDICATE, [one for one in conditions if one in used], conditions),
    ):
        if not given:
            continue
        if chosen == given:
            draft.put(family, ",".join(chosen), origins[family])
        elif chosen:
            draft.put(family, ",".join(chosen), origins[family], "mapped", f"{family}: {','.join(chosen)}")
        else:
            draft.say(origins[family], "no effect", "none of them is left in the source")
    for name in used:
        for member, value in predicates[name].items():
            draft.put(f"{PREDICATE}.{name}.{member}", value, origins[f"{PREDICATE}.{name}.{member}"])
    for name in members:
        if not draft.told(origins[name]):
            family = name.partition(".")[0]
            draft.say(origins[name], "no effect", f"'{family}' names nothing that uses it")
    return {name: value for name, value in properties.items() if name not in members}


def _members(properties: Mapping[str, str], family: str, name: str) -> dict[str, str]:
    prefix = f"{family}.{name}."
    return {key.removeprefix(prefix): value for key, value in properties.items() if key.startswith(prefix)}


def _keep(
    draft: Draft,
    name: str,
    transforms: Mapping[str, Mapping[str, str]],
    predicates: Mapping[str, Mapping[str, str]],
    origins: Mapping[str, str],
) -> bool:
    """Take a transform into the draft; return whether it is one of the source's."""
    own = transforms[name]
    place = f"{TRANSFORM}.{name}"
    given = own.get("type", "").strip()
    kind = _OTHER_TYPES.get(given, given)
    condition = predicates.get(own["predicate"].strip()) if "predicate" in own else None
    refusal = _refusal(kind, own, condition)
    if not refusal and "predicate" in own and condition is None:
        refusal = f"'{PREDICATE}' doesn't name '{own['predicate']}', which decides what it changes"
    if kind in _PASSES_ALL:
        for member in own:
            draft.say(origins[f"{place}.{member}"], "no effect", NO_JVM)
        return False
    if refusal:
        for member in own:
            draft.say(
                origins[f"{place}.{member}"], "not supported", refusal if member == "type" else f"see {place}.type"
            )
        if not own:
            draft.say(origins[TRANSFORM], "not supported", f"there is no '{place}.type'")
        return False
    if kind == _UNWRAP:
        own = _current_mode(draft, place, own, origins)
    translated = _in_sql(kind, own)
    for member, former in own.items():
        value = translated.get(member, former)
        option = f"{place}.{_OTHER_OPTIONS.get(given, {}).get(member, member)}"
        origin = origins[f"{place}.{member}"]
        if member == "type" and kind != given:
            draft.put(option, kind, origin, "mapped", f"{option}: {kind}")
        elif option != f"{place}.{member}":
            draft.put(option, value, origin, "mapped", option)
        elif value != former:
            draft.put(option, value, origin, "mapped", f"{option}: {value}")
        else:
            draft.put(option, value, origin)
    if given == _NEW_ROUTER and _KEY_FIELD not in own:
        draft.source[f"{place}.{_KEY_FIELD}"] = _NEW_KEY_FIELD
    return True


def _refusal(kind: str, own: Mapping[str, str], condition: Mapping[str, str] | None) -> str:
    """Return why a transform isn't supported, with what to do instead; empty if it is."""
    if kind not in TRANSFORMS:
        base = kind.removesuffix("$Value").removesuffix("$Key")
        return f"there is no transform '{kind}': {_INSTEAD.get(base, _ANY)}"
    scripted = _SCRIPTED.get(kind)
    if scripted is not None and own.get("language", "").strip().lower() != LANGUAGE and not _in_sql(kind, own):
        name = scripted.expression_option
        instead = f"set language to {LANGUAGE}, and {name} to {_SPARKS} {scripted.example}"
        return f"its script is too much to translate: {instead}"
    if condition is not None and condition.get("type", "").strip() not in PREDICATES:
        return f"there is no predicate '{condition.get('type', '')}': it must be one of {', '.join(PREDICATES)}"
    return ""


def _in_sql(kind: str, own: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a transform's script in SQL; none if it has none, or one that isn't that simple."""
    scripted = _SCRIPTED.get(kind)
    if scripted is None or not own.get("language", "").startswith("jsr223."):
        return {}
    found = as_sql(own.get(scripted.expression_option, ""))
    return {} if found is None else {"language": LANGUAGE, scripted.expression_option: found}


def _current_mode(draft: Draft, place: str, own: Mapping[str, str], origins: Mapping[str, str]) -> dict[str, str]:
    """Replace the two options that Debezium had before 2.5 by the one that it has now."""
    given = [name for name in _LEGACY if name in own]
    rest = {name: value for name, value in own.items() if name not in _LEGACY}
    for name in given:
        if _MODE in own:
            draft.say(origins[f"{place}.{name}"], "no effect", f"'{place}.{_MODE}' is given, too, and replaces it")
    if not given or _MODE in own:
        return rest
    drops = own.get(_LEGACY[0], "true").strip().lower() != "false"
    mode, differs = _MODES.get((own.get(_LEGACY[1], "drop").strip().lower(), drops), ("", ""))
    for name in given:
        origin = origins[f"{place}.{name}"]
        if mode:
            remark = f"{place}.{_MODE}: {mode}" + (f" ({differs})" if differs else "")
            draft.put(f"{place}.{_MODE}", mode, origin, "mapped", remark)
        else:
            draft.say(origin, "not supported", f"it must be drop, none or rewrite; see {_MODE}")
    return rest
