"""What becomes of a connector's properties: options of the source, whose models say what is right."""

from __future__ import annotations

import re
from collections.abc import Mapping

from floodmark.cli.convert.draft import Draft
from floodmark.cli.pages.debezium import difference
from floodmark.config.columns import SALT
from floodmark.config.debezium import accept, find
from floodmark.config.model import NO_EFFECT, current_value, nearest, split_list
from floodmark.connectors.advice import advice, now_called
from floodmark.connectors.load import load_options
from floodmark.errors import ConfigError
from floodmark.spark.pipelines.text import as_texts

STATE_DIR = "state.dir"
_SKIPPED = "skipped.operations"
_HISTORY = "schema.history.internal"
_OF_HISTORY_CONTENT = (f"{_HISTORY}.skip.", f"{_HISTORY}.store.only.")
"""How the options of a schema history begin that say what it, or the topic of schema changes, has."""
_SALTED = re.compile(r"(?i)(column\.mask\.hash\.(?:v2\.)?[^.]+\.with\.salt\.)(.+)")
_OF_DRIVER = "database."
_CONVERTERS = "converters"
_JAVA_CONVERTER = "a converter is a Python package here, not a Java class: docs/columns.md, 'Custom converters'"
_QUOTED = re.compile(r"'([^']+)'")


def take_source(draft: Draft, properties: Mapping[str, str], origins: Mapping[str, str]) -> None:
    """Take a connector's properties into a draft, apart from those that others have taken.

    Args:
        draft: the pipeline file.
        properties: by the names that they have for a connector.
        origins: the names that they have in the configuration.
    """
    lower = {name.lower() for name in properties}
    java = _java_converters(draft, properties, origins)
    for name, value in properties.items():
        origin = origins[name]
        if name in java:
            continue
        today = now_called(name.lower())
        if not today:
            _take(draft, name, value, origin)
        elif today in lower:
            draft.say(origin, "no effect", f"it is Debezium 1.x's name of '{today}', which is given, too")
        elif draft.spec.option_model.knows(today):
            _take(draft, today, value, origin, f"{today}, as it has been called since Debezium 2")
        else:
            _take(draft, today, value, origin)


def _java_converters(draft: Draft, properties: Mapping[str, str], origins: Mapping[str, str]) -> set[str]:
    """Refuse converters that are Java classes; return the properties of theirs."""
    names = split_list(properties.get(_CONVERTERS, ""))
    refused = [name for name in names if "." in properties.get(f"{name}.type", "")]
    if not refused:
        return set()
    kept = [name for name in names if name not in refused]
    found = {name for name in properties if name.partition(".")[0] in refused and "." in name}
    for name in found:
        draft.say(origins[name], "not supported", _JAVA_CONVERTER if name.endswith(".type") else f"see {_CONVERTERS}")
    if kept:
        draft.put(_CONVERTERS, ",".join(kept), origins[_CONVERTERS], "mapped", f"{_CONVERTERS}: {','.join(kept)}")
    else:
        draft.say(origins[_CONVERTERS], "not supported", _JAVA_CONVERTER)
    return {*found, _CONVERTERS}


def _take(draft: Draft, name: str, value: str, origin: str, renamed: str = "") -> None:
    model = draft.spec.option_model
    above = next((one for one in model.refused if "<" not in one and name.startswith(f"{one}.")), None)
    if above is not None:
        draft.say(origin, "not supported", f"see {above}")
        return
    if name.startswith(_HISTORY) and not name.startswith(_OF_HISTORY_CONTENT) and model.knows(_HISTORY):
        draft.say(origin, "no effect", "the query keeps its schema history in state.dir; see the command below")
        return
    try:
        if accept(name, value, model.accepted, model.refused):
            draft.say(origin, "no effect", model.accepted[str(find(model.accepted, name))].reason)
            return
    except ConfigError as exc:
        draft.say(origin, "not supported", exc.what)
        return
    declared = model.field_of(name)
    if declared is None:
        _unknown(draft, name, origin)
        return
    text = declared[1].description or ""
    if text.startswith(NO_EFFECT):
        draft.say(origin, "no effect", text.removeprefix(NO_EFFECT).rstrip("."))
    elif _SALTED.fullmatch(name):
        _take_hash(draft, name, value, origin)
    elif (today := current_value(name, value)) != value:
        draft.put(name, today, origin, "mapped", f"{name}: {today}")
    else:
        draft.put(name, value, origin, "mapped" if renamed else "kept", renamed or difference(draft.spec.name, name))


def _take_hash(draft: Draft, name: str, value: str, origin: str) -> None:
    """Take a hash of columns, whose salt stands in the option's name, where Spark would lose its case."""
    found = _SALTED.fullmatch(name)
    assert found is not None, "it was matched before"
    kind, salt = found.groups()
    if salt.upper() == salt.lower():
        draft.put(name, value, origin)
        return
    number = 1 + sum(option.startswith(SALT.partition("<")[0]) for option in draft.source)
    named = f"salt{number}"
    option = SALT.replace("<name>", named)
    draft.put(
        f"{kind}{named}", value, origin, "mapped", f"the salt is '{option}' now, since Spark drops the case of names"
    )
    draft.source[option] = draft.references.written(option, salt, f"the salt in '{kind}…'", secret=True)


def _unknown(draft: Draft, name: str, origin: str) -> None:
    """Note an option that the connector doesn't have: Debezium ignores it, or its JDBC driver takes it."""
    model = draft.spec.option_model
    what, cure = advice(model, name)
    close = nearest(name, model.names(), 0.8)
    driver = find(model.accepted, "driver.x")
    if ", which only Debezium 1.x has" in what:
        draft.say(origin, "not supported", f"only Debezium 1.x has it. {cure}")
    elif name.startswith(_OF_DRIVER) and not close and not what and driver is not None:
        draft.say(origin, "no effect", model.accepted[driver].reason)
    else:
        draft.say(origin, "no effect", f"Debezium ignores it{what}. {close or (cure if what else '')}".strip())


def settle(draft: Draft) -> None:
    """Take back what the connector's model refuses, and add what it requires, until it is right.

    Raises:
        ConfigError: the options are wrong in a way that no single one is to blame for.
    """
    tried = dict(draft.source)
    if draft.sink.type == "jdbc":
        # What a pipeline gives the sources of targets.
        tried["format"] = "arrow"
        if draft.source.get(_SKIPPED, "none") != "none":
            draft.withdraw(_SKIPPED, "the sink jdbc keeps tables equal to the source's")
            del tried[_SKIPPED]
    while True:
        # Each round takes an option away, or adds one that is required.
        texts = as_texts(tried, "source", draft.references.environment)
        assert isinstance(texts, dict), "it was made of a mapping"
        try:
            load_options({name: str(value) for name, value in texts.items()})
        except ConfigError as exc:
            required = _required(draft, exc)
            if required:
                tried[required] = draft.source[required] = draft.references.missing(required)
                draft.say(required, "missing", exc.what)
                continue
            name = _blamed(draft, tried, exc)
            if name is None:
                raise
            if draft.references.knows_all(tried[name]):
                draft.withdraw(name, str(exc))
            # The value of a variable shows only when the pipeline runs.
            del tried[name]
        else:
            return


def _required(draft: Draft, error: ConfigError) -> str | None:
    """Return the option that the configuration must have and lacks, if that is the error."""
    named = _QUOTED.search(error.what)
    declared = draft.spec.option_model.field_of(named[1]) if named else None
    if named is None or declared is None or " is required" not in error.what:
        return None
    # One of a family has the name that the error says.
    option = named[1] if "<" in declared[0] else declared[0]
    return None if option in draft.source else option


def _blamed(draft: Draft, tried: Mapping[str, str], error: ConfigError) -> str | None:
    """Return the option that an error is about; None if it names none."""
    model = draft.spec.option_model
    given = {name.lower(): name for name in tried}
    for quoted in _QUOTED.findall(error.what):
        if quoted.lower() in given and quoted not in ("connector", STATE_DIR):
            return given[quoted.lower()]
        members = [name for name in tried if (found := model.field_of(name)) is not None and found[0] == quoted != name]
        if members:
            return next((one for one in members if not _fails(draft, tried, one, error)), members[-1])
    return None


def _fails(draft: Draft, tried: Mapping[str, str], without: str, error: ConfigError) -> bool:
    """Return whether options are wrong for the same reason without one of them."""
    rest = {name: value for name, value in tried.items() if name != without}
    texts = as_texts(rest, "source", draft.references.environment)
    assert isinstance(texts, dict), "it was made of a mapping"
    try:
        load_options({name: str(value) for name, value in texts.items()})
    except ConfigError as exc:
        return exc.what == error.what
    return False
