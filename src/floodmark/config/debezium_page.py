"""The page of Debezium's options: ``docs/debezium-options.md``.

Run ``python -m floodmark.config.debezium_page docs/debezium-options.md`` after a change of a model or of
``floodmark.config.debezium``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pydantic.fields import FieldInfo

from floodmark.config.debezium import ACCEPTED, REFUSED
from floodmark.config.model import OWN, SAME
from floodmark.config.postgres import PostgresOptions

NO_EFFECT = "No effect: "
DIFFERS = {
    "<converter>.<option>": "`<converter>.type` is an entry point, not a Java class",
    "column.mask.hash.<algorithm>.with.salt.<salt>": "a salt with letters is given by `column.mask.salt.<name>`",
    "column.mask.hash.v2.<algorithm>.with.salt.<salt>": "a salt with letters is given by `column.mask.salt.<name>`",
    "converters": "Python's, by entry point",
    "database.sslmode": "as in libpq",
    "extended.headers.enabled": "the headers are not there",
    "key.converter.schemas.enable": "false if not given, and it must equal `value.converter.schemas.enable`",
    "offset.mismatch.strategy": "`no_validation` does not go on behind a gap: it is `trust_offset`",
    "plugin.name": "only `pgoutput`, which is the default",
    "retriable.restart.connector.wait.ms": "if not given, `errors.retry.delay.*` say how long to wait",
    "signal.consumer.<option>": "names of librdkafka",
    "signal.enabled.channels": "`jmx` has no effect",
    "snapshot.max.threads": "if not given, as many as Spark has cores",
    "skip.messages.without.change": "never leaves out a change of the key",
    "snapshot.mode": "`always`, and a snapshot that is begun again: see [Differences](differences.md)",
    "value.converter.schemas.enable": "false if not given, and it must equal `key.converter.schemas.enable`",
}
"""What differs of options that work."""
NAMED_OTHERWISE = ("connector", "connect.timeout.ms", "schemas.enable")
"""Options that stand for some of Debezium's with other names, or of other databases."""
INTRODUCTION = """# Debezium's options

Every option of Debezium 3.6 for PostgreSQL, and what becomes of it here. What the options mean is in
[Options](options.md).

- *works*: the same name, values and meaning. Events differ only where [Differences](differences.md) says so.
- *differs*: it works, with the difference that is named.
- *no effect*: it is accepted, so that a configuration can be taken over, and a line of the log (level `info`) says
  why it does nothing.
- *refused*: an error, since events would not be what was asked for.

Options of other databases, and whatever is in neither this list nor [Options](options.md), are unknown: an error that
names the nearest option.

This page is generated from the option models.

| option | state | |
| --- | --- | --- |
"""


def states() -> dict[str, tuple[str, str]]:
    """Return the state of each of Debezium's options and what is to be said of it."""
    found = {name: ("no effect", foreign.reason) for name, foreign in ACCEPTED.items()}
    found |= {name: ("refused", reason) for name, reason in REFUSED.items()}
    for field in PostgresOptions.model_fields.values():
        name, text = str(field.alias), field.description or ""
        if own(field) or name in NAMED_OTHERWISE:
            continue
        if text.startswith(NO_EFFECT):
            found[name] = ("no effect", text.removeprefix(NO_EFFECT).rstrip("."))
        else:
            found[name] = ("works", "")
    return found | {name: ("differs", text) for name, text in DIFFERS.items()}


def own(field: FieldInfo) -> bool:
    """Tell whether an option is Floodmark's own."""
    extra = field.json_schema_extra
    return isinstance(extra, dict) and extra.get("debezium", SAME) == OWN


def render() -> str:
    """Return the page."""
    rows = [f"| `{name}` | {state} | {text} |" for name, (state, text) in sorted(states().items())]
    return INTRODUCTION + "\n".join(rows) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
