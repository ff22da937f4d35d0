"""Errors of transforms that their options alone don't show."""

from __future__ import annotations

from floodmark.config.transforms.settings import TransformSettings
from floodmark.errors import SourceStateError
from floodmark.transforms.records import Records
from floodmark.transforms.structs import Struct

CHANGED = "an earlier transform has taken '{}' out of their envelopes"
LIMIT = "Correct the option, or limit the transform to other topics by a predicate."


def failure(settings: TransformSettings, option: str, records: Records, problem: str, cure: str = LIMIT) -> Exception:
    """Return the error of a transform that can't be applied to records.

    Args:
        settings: the transform's.
        option: the name of the option that asks for what isn't possible, without the transform's.
        records: what it can't be applied to.
        problem: why, as a sentence without its end.
        cure: what to do.
    """
    return SourceStateError(
        f"The transform '{settings.name}' can't be applied to {records.origin} by "
        f"'transforms.{settings.name}.{option}': {problem}.",
        cure,
    )


def member(settings: TransformSettings, option: str, records: Records, envelope: Struct, name: str) -> Struct:
    """Return a structure of envelopes, such as ``after``.

    Raises:
        SourceStateError: an earlier transform has taken it away.
    """
    found = None if envelope.field(name) is None else envelope.value(name)
    if not isinstance(found, Struct):
        raise failure(settings, option, records, CHANGED.format(name))
    return found
