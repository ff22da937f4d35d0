"""Redacts texts that can hold passwords: statements, URIs, and what servers report about them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

HIDDEN = "…"
_SHORTEST = 4

_FIRST_WORD = re.compile(r"(?:\s|--[^\n]*\n|/\*.{0,1000}?\*/)*([A-Za-z]+)", re.DOTALL)
_QUOTED = re.compile(r"[\"'`\u201c\u00ab].*[\"'`\u201d\u00bb]", re.DOTALL)
_CREDENTIALS = re.compile(r"(?<=://)[^/?#]*@")
_LOGIN = re.compile(r"[^\s/?#:@]*:[^\s/?#@]*@")
_PARAMETERS = re.compile(r"\?.*", re.DOTALL)
_NAMED = re.compile(
    r"(?i)((?:password|passwd|token|secret|credential)[^=:\s]*\s*[=:]\s*)[^\s&;,]+|(://[^/\s:@]*:)[^@\s]+@"
)
"""What follows the name of a secret, and a password in a URI."""
_SECRET_NAME = re.compile(r"(?i)password|passwd|token|secret|credential|key")


def shown_statement(statement: str) -> str:
    """Return the first keyword of a statement, the only part that holds no secret."""
    found = _FIRST_WORD.match(statement)
    return f"{found[1].upper()} {HIDDEN}" if found is not None else HIDDEN


def shown_reason(reason: str) -> str:
    """Return a server's message about a statement without the parts that it quotes."""
    return _QUOTED.sub(HIDDEN, " ".join(reason.split())).rstrip(".")


def shown_uri(uri: str) -> str:
    """Return a URI without the credentials before its host and the parameters at its end; a path unchanged."""
    return _PARAMETERS.sub(f"?{HIDDEN}", _CREDENTIALS.sub(f"{HIDDEN}@", uri)) if "://" in uri else uri


def without_login(text: str) -> str:
    """Return a text without a name and a password before an ``@``."""
    return _LOGIN.sub(f"{HIDDEN}@", text)


def without_named_secrets(text: str) -> str:
    """Return a text without what follows the names of secrets, and without passwords in URIs."""
    return _NAMED.sub(lambda one: f"{one[1] or one[2]}{HIDDEN}{'@' if one[2] else ''}", text)


def without_secret_values(text: str, properties: Mapping[str, str]) -> str:
    """Return a text without the values of properties that are named like secrets, and without logins in others."""
    for name, value in properties.items():
        if _SECRET_NAME.search(name) and len(value) >= _SHORTEST:
            text = text.replace(value, HIDDEN)
        else:
            text = without_uri_secrets(value, text)
    return without_named_secrets(text)


def without_uri_secrets(uri: str, text: str) -> str:
    """Return a text that may contain a URI or parts of it, without what ``shown_uri`` hides."""
    text = text.replace(uri, shown_uri(uri))
    if "://" not in uri:
        return text
    rest = uri.split("://", 1)[1]
    place, _, parameters = rest.partition("?")
    login = place.split("/", 1)[0].rpartition("@")[0]
    parts = [login, *login.split(":"), *(item.partition("=")[2] for item in parameters.split("&"))]
    for part in sorted({*parts, *map(unquote, parts)}, key=len, reverse=True):
        if len(part) >= _SHORTEST:
            text = text.replace(part, HIDDEN)
    return text
