"""Conditions on records, as Kafka Connect has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from floodmark.config.model import Options
from floodmark.config.transforms.predicates import HasHeaderKeyOptions, TopicNameMatchesOptions
from floodmark.transforms.records import Records, nulls

Predicate: TypeAlias = Callable[[Records], NDArray[np.bool_]]
"""Returns whether each record meets a condition, shape (rows,)."""


def make_predicate(options: Options) -> Predicate:
    """Return the predicate of options."""
    if isinstance(options, TopicNameMatchesOptions):
        pattern = options.compiled

        def matching(records: Records) -> NDArray[np.bool_]:
            if isinstance(records.topic, str):
                return np.full(records.rows, pattern.fullmatch(records.topic))
            topics = records.topic.dictionary_encode()
            found = [pattern.fullmatch(topic) for topic in topics.dictionary.to_pylist()]
            met: NDArray[np.bool_] = np.array(found, np.bool_)[topics.indices.to_numpy()]
            return met

        return matching
    if isinstance(options, HasHeaderKeyOptions):
        name = options.name
        return lambda records: np.full(records.rows, any(header.name == name for header in records.headers))
    return lambda records: nulls(records.value, records.rows)
