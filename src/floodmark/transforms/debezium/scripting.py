"""What transforms that evaluate expressions share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import cast

import numpy as np

from floodmark.config.transforms.scripting import ScriptingOptions
from floodmark.config.transforms.settings import TransformSettings
from floodmark.transforms.failures import failure
from floodmark.transforms.records import Records, by_topic, nulls
from floodmark.transforms.sql.columns import SHOWN, Column, EvaluationError, Kind
from floodmark.transforms.sql.evaluator import evaluate

_CURE = (
    "Correct the expression, or limit it to topics whose records have what it needs, by 'topic.regex' or a predicate."
)


class Scripting(ABC):
    """A transform that evaluates an expression for records.

    Args:
        settings: its name and its options.
    """

    kind: Kind
    """The type that the expression must have."""

    def __init__(self, settings: TransformSettings) -> None:
        self._settings = settings
        self._options = options = cast(ScriptingOptions, settings.options)
        self._expression = options.expression
        self._topics = options.topics

    def __call__(self, records: Records) -> Sequence[Records]:
        """Return what becomes of records.

        Raises:
            SourceStateError: the expression can't be evaluated for them.
        """
        if self._topics is None:
            return self._of_topics(records)
        made: list[Records] = []
        for topic, part in by_topic(records):
            made += self._of_topics(part) if self._topics.fullmatch(topic) else (part,)
        return made

    def _of_topics(self, records: Records) -> Sequence[Records]:
        mode = self._options.null_handling_mode
        without = nulls(records.value, records.rows) if mode != "evaluate" else np.zeros(records.rows, bool)
        if not without.any():
            return self._evaluated(records)
        kept = () if mode == "drop" else (records.take(np.flatnonzero(without)),)
        if without.all():
            return kept if mode == "drop" else (records,)
        return [*self._evaluated(records.take(np.flatnonzero(~without))), *kept]

    def _evaluated(self, records: Records) -> Sequence[Records]:
        try:
            column = evaluate(self._expression, records)
        except EvaluationError as exc:
            raise self._failure(records, str(exc)) from None
        if column.kind not in (self.kind, "null"):
            raise self._failure(records, f"it is {SHOWN[column.kind]}, and must be {SHOWN[self.kind]}")
        return self._apply(records, column)

    def _failure(self, records: Records, problem: str) -> Exception:
        return failure(self._settings, self._options.expression_option, records, problem, _CURE)

    @abstractmethod
    def _apply(self, records: Records, column: Column) -> Sequence[Records]:
        """Return what becomes of records with the expression's values."""
