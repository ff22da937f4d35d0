"""A pipeline file in the making, and what has become of each property."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from floodmark.cli.convert.references import References
from floodmark.config.columns import SALT
from floodmark.config.kafka_clients import kafka_secrets
from floodmark.config.model import Options, SecretFamily, is_secret
from floodmark.connectors.registry import ConnectorSpec

Result = Literal["kept", "mapped", "no effect", "not supported", "missing"]
_SALT = re.compile(r"(?i)(\.with\.salt\.).*")
_HIDDEN = r"\1…"


@dataclass(frozen=True)
class Outcome:
    """What has become of a property.

    Attributes:
        name: as the configuration has it, without a salt in it; an option of Floodmark that has to be given.
        result: ``kept`` under the same name, ``mapped`` to something else, ``no effect`` here, ``not supported``, or
            ``missing``: Floodmark needs it, and the configuration doesn't have it.
        remark: what it was mapped to, why it has no effect, or what to do; empty if there is nothing to say.
    """

    name: str
    result: Result
    remark: str = ""


@dataclass
class Sink:
    """The sink of a pipeline file.

    Attributes:
        type: its type.
        options: its options, as the file has them.
        origins: the properties that they come from, by their names.
        path: a directory, for sinks of files.
    """

    type: str = "kafka"
    options: dict[str, str] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    path: str | None = None


class Draft:
    """A pipeline file in the making.

    Args:
        spec: the connector.
        references: writes values.
        names: of the configuration's properties, in their order.
    """

    def __init__(self, spec: ConnectorSpec, references: References, names: Iterable[str]) -> None:
        self.spec = spec
        self._order = {name: number for number, name in enumerate(names)}
        self.references = references
        self.source: dict[str, str] = {"connector": spec.name}
        self.sink = Sink()
        self.notes: list[str] = []
        self._origins: dict[str, str] = {}
        self._outcomes: dict[str, Outcome] = {}

    @property
    def outcomes(self) -> Sequence[Outcome]:
        """What has become of the properties, in their order; others follow."""
        return tuple(self._outcomes[name] for name in sorted(self._outcomes, key=self._place))

    @property
    def ordered_source(self) -> dict[str, str]:
        """The source's options in the order of the properties that they come from; others follow."""
        places = {name: self._place(self._origins.get(name, name)) for name in self.source}
        places["connector"] = -1
        return {name: self.source[name] for name in sorted(self.source, key=places.__getitem__)}

    def told(self, name: str) -> bool:
        """Return whether it is known what has become of a property."""
        return name in self._outcomes

    def say(self, name: str, result: Result, remark: str = "") -> None:
        """Note what has become of a property; a later outcome replaces an earlier one."""
        self._outcomes[name] = Outcome(_SALT.sub(_HIDDEN, name), result, remark)

    def _place(self, name: str) -> int:
        return self._order.get(name, len(self._order))

    def put(
        self, option: str, value: str, origin: str, result: Result = "kept", remark: str = "", secret: bool = False
    ) -> None:
        """Give the source an option.

        Args:
            option: its name.
            value: its value, as the configuration has it.
            origin: the property that it comes from.
            result: what that makes of the property.
            remark: what to say of it.
            secret: whether the value must not stand in the file, besides what the option's model says.
        """
        secret = secret or is_secret_option(self.spec.option_model, option)
        written = self.references.written(option, value, f"the value of '{origin}'", secret)
        self.source[option] = written
        self._origins[option] = origin
        if result == "kept" and written != value:
            self.say(origin, "mapped", f"{option}: {written}")
        else:
            self.say(origin, result, remark)

    def put_into_sink(self, option: str, value: str, origin: str, model: type[Options]) -> None:
        """Give the sink an option of a model; the arguments are those of ``put``."""
        meaning = f"the value of '{origin}'"
        self.sink.options[option] = self.references.written(option, value, meaning, is_secret_option(model, option))
        self.sink.origins[option] = origin
        self.say(origin, "mapped", f"sink.options: {option}")

    def withdraw(self, option: str, reason: str) -> None:
        """Take an option of the source back, since it is refused."""
        self.source.pop(option)
        self.say(self._origins.pop(option, option), "not supported", reason)

    def withdraw_from_sink(self, option: str, reason: str) -> None:
        """Take an option of the sink back, since it is refused."""
        self.sink.options.pop(option)
        self.say(self.sink.origins.pop(option, option), "not supported", reason)


def is_secret_option(model: type[Options], option: str) -> bool:
    """Return whether the value of an option must not stand in a file."""
    found = model.field_of(option)
    if found is None:
        return False
    name, declared = found
    if declared.annotation == SecretFamily and name != SALT:
        # Such families hold all settings of a client, of which few are secret.
        return bool(kafka_secrets({option.lower(): "x"}))
    # The options with a salt in their names have columns as their values.
    return is_secret(declared) and (name == SALT or "<" not in name)
