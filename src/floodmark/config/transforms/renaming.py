"""What options of several transforms share: regular expressions, and the replacements of what they match."""

from __future__ import annotations

from floodmark.config.java_patterns import Renaming
from floodmark.config.patterns import PatternError


def checked_renaming(regex_option: str, regex: str, replacement_option: str, replacement: str) -> Renaming:
    """Return what two options mean.

    Raises:
        ValueError: one of them is wrong.
    """
    try:
        return Renaming(regex, replacement)
    except PatternError as exc:
        raise ValueError(
            f"Option '{regex_option}' ({regex}) or '{replacement_option}' ({replacement}) is wrong: {exc}."
        ) from None
