"""Reads the text of ``pipeline.yaml``: YAML whose values are all text, with environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import yaml

from floodmark.errors import ConfigError
from floodmark.json_data import Json

_VARIABLE = re.compile(r"\$(\$)?\{(?:([A-Za-z_][A-Za-z0-9_]*)\})?")
"""A variable, or the beginning of what isn't one."""


def read_content(path: Path, keys: str) -> Mapping[str, Json]:
    """Return the content of a pipeline file.

    Args:
        path: the file.
        keys: the names of its keys, for errors.

    Raises:
        ConfigError: the file is missing, not YAML, has a key twice, or is no mapping.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        reason = getattr(exc, "strerror", None) or exc
        raise ConfigError(f"Cannot read the pipeline file {path}: {reason}.") from None
    try:
        # Two steps, since only the node tree still shows duplicate keys.
        tree = yaml.compose(text, yaml.BaseLoader)
        _refuse_duplicates(tree, "", path)
        content = yaml.load(text, yaml.BaseLoader)
    except yaml.YAMLError as exc:
        raise ConfigError(f"The pipeline file {path} is not YAML: {_yaml_problem(exc)}.") from None
    except RecursionError:
        raise ConfigError(f"The pipeline file {path} is nested too deeply, or holds itself by an alias.") from None
    if not isinstance(content, dict):
        raise ConfigError(f"The pipeline file {path} must hold a mapping with the keys {keys}.")
    return content


def _refuse_duplicates(node: yaml.Node | None, where: str, path: Path) -> None:
    """Raise an error for a duplicate key: PyYAML would silently keep the last one."""
    if not isinstance(node, yaml.MappingNode):
        return
    lines: dict[str, int] = {}
    for key, value in node.value:
        name, line = str(key.value), key.start_mark.line + 1
        if name in lines:
            raise ConfigError(
                f"The pipeline file {path} has the key '{where}{name}' twice, in lines {lines[name]} and {line}.",
                "Remove one of them.",
            )
        lines[name] = line
        _refuse_duplicates(value, f"{where}{name}.", path)


def as_texts(value: Json, where: str, environment: Mapping[str, str]) -> Json:
    """Replace variables everywhere, and lists by comma-separated text.

    Args:
        value: a key's value.
        where: the key, for errors.
        environment: the variables.

    Raises:
        ConfigError: a variable is not set or not written right, or a list holds more than plain values.
    """
    if isinstance(value, Mapping):
        return {str(key): as_texts(item, f"{where}.{key}", environment) for key, item in value.items()}
    if isinstance(value, list):
        return ",".join(_item(as_texts(item, where, environment), where) for item in value)
    if isinstance(value, bool):
        return str(value).lower()
    return _substitute(str(value), where, environment)


def _item(value: Json, where: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"Key '{where}' must be a list of plain values.")
    return value.replace(",", "\\,")


def _substitute(text: str, where: str, environment: Mapping[str, str]) -> str:
    def replacement(match: re.Match[str]) -> str:
        escaped, name = match.groups()
        if escaped:
            return match[0][1:]
        if name is None:
            # What follows may be a part of a password.
            raise ConfigError(
                f"Key '{where}' has a '${{' that isn't followed by the name of an environment variable and '}}'.",
                "Write ${NAME}, without a default value, or $${ if the text itself is meant.",
            )
        if name not in environment:
            raise ConfigError(
                f"Key '{where}' uses the environment variable {name}, which is not set.",
                f"Set it, or write $${{{name}}} if the text itself is meant.",
            )
        return environment[name]

    return _VARIABLE.sub(replacement, text)


def _yaml_problem(exc: yaml.YAMLError) -> str:
    mark = getattr(exc, "problem_mark", None)
    problem = getattr(exc, "problem", None) or str(exc).splitlines()[0]
    if problem.startswith("but "):
        problem = f"{getattr(exc, 'context', '')}, {problem}"
    hint = ". Indent with spaces" if "'\\t'" in str(problem) else ""
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}{hint}" if mark else problem
