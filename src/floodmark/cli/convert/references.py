"""Values of a configuration as a pipeline file writes them: secrets and references become environment variables.

Sources: Kafka Connect's ``ConfigTransformer`` (``${provider:path:key}``); MicroProfile's and Quarkus' property
expressions (``${name}`` and ``${name:default}``), which Debezium Server has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

_OF_PROVIDERS = re.compile(r"\$\{([^}:]+):(?:([^}]*?):)?([^}:]*)\}")
_OF_SERVER = re.compile(r"\$\{([^}:]+)(?::([^}]*))?\}")
_PLAIN = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_ENVIRONMENT = ("env", "strimzienv")
"""The usual names of Kafka Connect's provider of environment variables; a worker's file may have others."""
_FIELDS_OF_EVENTS = ("source.", "topic")
"""How names of fields begin, which the sinks' options hold in ``${…}`` too."""
_DEPTH = 10
"""How often the value of a property may refer to another one."""
_UNKNOWN = "x"
"""What stands for a value that isn't known, where options are checked."""


@dataclass(frozen=True)
class Variable:
    """An environment variable of the pipeline file.

    Attributes:
        name: its name.
        meaning: what to set it to.
        value: its value as far as the configuration has it, which must not be shown; None: it isn't known.
    """

    name: str
    meaning: str
    value: str | None = field(default=None, repr=False)


class References:
    """Writes values for a pipeline file, and collects the variables that they need.

    Args:
        providers: Kafka Connect's providers of configurations that read environment variables, by their names.
        server: Debezium Server's properties, to which values may refer; None for a connector of Kafka Connect.
    """

    def __init__(self, providers: tuple[str, ...] = (), server: Mapping[str, str] | None = None) -> None:
        self.variables: dict[str, Variable] = {}
        self._providers = (*_ENVIRONMENT, *providers)
        self._server = server

    @property
    def environment(self) -> dict[str, str]:
        """The variables with their values, or with a text where these aren't known, to check options with."""
        return {name: one.value or _UNKNOWN for name, one in self.variables.items()}

    def knows_all(self, text: str) -> bool:
        """Return whether the values of all variables in a text are known."""
        return all(self.variables[name].value is not None for name in _PLAIN.findall(text.replace("$${", "")))

    def missing(self, option: str) -> str:
        """Return a reference for an option that the configuration lacks."""
        return self._variable(option, f"the option '{option}', which the configuration lacks", None)

    def written(self, option: str, value: str, meaning: str, secret: bool = False) -> str:
        """Return a value as the pipeline file has it.

        Args:
            option: the option that gets it, after which variables are named.
            value: the configuration's.
            meaning: what to set a variable to that holds it.
            secret: whether it must not stand in the file.
        """
        if secret and not self._is_reference(value):
            return self._variable(option, meaning, value)
        return self._expanded(option, value, 0)

    def _is_reference(self, value: str) -> bool:
        pattern = _OF_PROVIDERS if self._server is None else _OF_SERVER
        if match := pattern.fullmatch(value):
            return self._server is None or match[1] not in self._server
        return _PLAIN.fullmatch(value) is not None

    def _expanded(self, option: str, value: str, depth: int) -> str:
        if self._server is not None:
            return _replaced(_OF_SERVER, value, lambda one: self._of_server(option, one, depth))
        return _replaced(_OF_PROVIDERS, value, lambda one: self._of_provider(option, one), self._plain)

    def _of_provider(self, option: str, match: re.Match[str]) -> str:
        provider, path, key = match.groups()
        if provider in self._providers and not path:
            return self._named(key, f"'{key}', as for Kafka Connect", None)
        place = f" in {path}" if path else ""
        return self._variable(option, f"'{key}'{place}, which Kafka Connect's provider '{provider}' reads", None)

    def _of_server(self, option: str, match: re.Match[str], depth: int) -> str:
        name, default = match.groups()
        assert self._server is not None, "there are such references only in Debezium Server's properties"
        if name.startswith(_FIELDS_OF_EVENTS) and name not in self._server:
            return _literal(match[0])
        if name in self._server and depth < _DEPTH:
            return self._expanded(option, self._server[name], depth + 1)
        variable = name if _PLAIN.fullmatch(f"${{{name}}}") else _variable_name(name)
        return self._named(variable, f"'{name}', as for Debezium Server" + _and_default(option, default), default)

    def _plain(self, text: str) -> str:
        """Return text outside of references; ``${NAME}`` in it is a template's, which Kafka Connect doesn't fill in."""
        return _replaced(
            _PLAIN, text, lambda one: self._named(one[1], f"'{one[1]}', as where the template is filled", None)
        )

    def _variable(self, option: str, meaning: str, value: str | None) -> str:
        """Return a variable that is named after an option."""
        name = _variable_name(option)
        number = 1
        while name in self.variables and self.variables[name] != Variable(name, meaning, value):
            number += 1
            name = f"{_variable_name(option)}_{number}"
        return self._named(name, meaning, value)

    def _named(self, name: str, meaning: str, value: str | None) -> str:
        self.variables.setdefault(name, Variable(name, meaning, value))
        return f"${{{name}}}"


def _replaced(
    pattern: re.Pattern[str],
    text: str,
    replace: Callable[[re.Match[str]], str],
    other: Callable[[str], str] | None = None,
) -> str:
    """Return a text with what matches replaced, and the rest written so that a pipeline file means it literally."""
    other = other or _literal
    pieces, end = [], 0
    for match in pattern.finditer(text):
        pieces += [other(text[end : match.start()]), replace(match)]
        end = match.end()
    return "".join([*pieces, other(text[end:])])


def _variable_name(option: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", option).upper()


def _literal(text: str) -> str:
    return text.replace("${", "$${")


def _and_default(option: str, default: str | None) -> str:
    if default is None:
        return ""
    # The default of a password is one.
    shown = "a default" if re.search(r"(?i)pass|secret|token|key", option) else f"the default '{default}'"
    return f"; pipeline files have no defaults, and there it has {shown}"
