"""Errors of transforms that their options alone don't show."""

from __future__ import annotations

from floodmark.config.transforms.settings import TransformSettings
from floodmark.errors import SourceStateError
from floodmark.transforms.records import Records

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
