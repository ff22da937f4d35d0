"""Translates simple expressions in Groovy or JavaScript, as Debezium's scripting takes them, to Spark's SQL."""

from __future__ import annotations

import re

from floodmark.config.expressions.parser import ExpressionError, parse_expression

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'[^'\\]*'|\"[^\"\\$]*\")|(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>===|!==|==|!=|<=|>=|&&|\|\||\?\.|[<>!?:().\[\]+*/%-]))",
    re.ASCII,
)
_COMPARED = {"==": "=", "===": "=", "!=": "<>", "!==": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_MATCHED = {"startsWith": "{}%", "endsWith": "%{}", "contains": "%{}%", "includes": "%{}%"}
_MOST = 20_000


class _UnknownError(Exception):
    """There is something that isn't translated."""


def as_sql(script: str) -> str | None:
    """Return what an expression is in SQL; None if it isn't that simple."""
    try:
        text = _Translator(script).whole()
        parse_expression(text)
    except (_UnknownError, ExpressionError, RecursionError):
        return None
    return text


class _Translator:
    """Translates one expression by recursive descent."""

    def __init__(self, script: str) -> None:
        script = script.strip().removesuffix(";").rstrip()
        if len(script) > _MOST:
            raise _UnknownError
        self._tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(script):
            found = _TOKEN.match(script, at)
            if found is None or found.lastgroup is None:
                raise _UnknownError
            self._tokens.append((found.lastgroup, found[found.lastgroup]))
            at = found.end()
        self._at = 0

    def whole(self) -> str:
        """Return all of it."""
        found = self._choice()
        if self._at < len(self._tokens):
            raise _UnknownError
        return found

    def _now(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("", "")

    def _take(self, *signs: str) -> str:
        """Return the next sign if it is one of some; else nothing."""
        kind, text = self._now()
        if kind != "sign" or text not in signs:
            return ""
        self._at += 1
        return text

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise _UnknownError

    def _choice(self) -> str:
        condition = self._joined("||", "OR")
        if not self._take("?"):
            return condition
        first = self._choice()
        self._expect(":")
        return f"CASE WHEN {condition} THEN {first} ELSE {self._choice()} END"

    def _joined(self, sign: str, word: str) -> str:
        parts = [self._joined("&&", "AND") if sign == "||" else self._compared()]
        while self._take(sign):
            parts.append(self._joined("&&", "AND") if sign == "||" else self._compared())
        return f" {word} ".join(parts)

    def _compared(self) -> str:
        left = self._single()
        sign = self._take(*_COMPARED)
        if not sign:
            return left
        right = self._single()
        operator = _COMPARED[sign]
        if right == "NULL" and operator in ("=", "<>"):
            return f"{left} IS {'NOT ' if operator == '<>' else ''}NULL"
        return f"{left} {operator} {right}"

    def _single(self) -> str:
        if self._take("!"):
            return f"(NOT {self._single()})"
        if self._take("-"):
            return f"-{self._single()}"
        if self._take("("):
            found = self._choice()
            self._expect(")")
            return f"({found})"
        kind, text = self._now()
        self._at += 1
        if kind == "text":
            return _quoted(text[1:-1])
        if kind == "number":
            return text
        if kind != "name":
            raise _UnknownError
        if text in ("null", "true", "false"):
            return text.upper()
        return self._path(text)

    def _path(self, root: str) -> str:
        """Return a field, or what a method of Java's says of it."""
        names = [root]
        while self._take(".", "?.", "["):
            if self._tokens[self._at - 1][1] == "[":
                names.append(self._literal())
                self._expect("]")
                continue
            kind, name = self._now()
            if kind != "name":
                raise _UnknownError
            self._at += 1
            if not self._take("("):
                names.append(name)
                continue
            argument = self._literal()
            self._expect(")")
            if name == "get":
                names.append(argument)
            elif name == "equals":
                return f"{_field(names)} = {_quoted(argument)}"
            elif name in _MATCHED and not set(argument) & set("%_"):
                return f"{_field(names)} LIKE {_quoted(_MATCHED[name].format(argument))}"
            else:
                raise _UnknownError
        return _field(names)

    def _literal(self) -> str:
        kind, text = self._now()
        if kind != "text":
            raise _UnknownError
        self._at += 1
        return text[1:-1]


def _field(names: list[str]) -> str:
    # Debezium wraps headers.
    if names[0] == "header" and len(names) == 3 and names[2] == "value":
        names = names[:2]
    return ".".join(name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else f"`{name}`" for name in names)


def _quoted(text: str) -> str:
    if "'" in text and '"' in text:
        raise _UnknownError
    return f'"{text}"' if "'" in text else f"'{text}'"
