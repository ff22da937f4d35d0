"""Reads the statements of a kind that have one of few patterns."""

from __future__ import annotations

import numpy as np

from floodmark.connectors.oracle.redo.gaps import Numbers
from floodmark.connectors.oracle.redo.matching import keep_matches, matches, place_in_text
from floodmark.connectors.oracle.redo.patterns import Learner, Pattern
from floodmark.connectors.oracle.redo.set_clauses import SetClauses
from floodmark.connectors.oracle.redo.values import Statements

ALIKE = 64
"""From how many statements of a kind on it is worth while to look for a pattern."""
_PART = 8
"""One in so many statements have a pattern, or it isn't worth while."""
_SAMPLES = 3
"""How many statements are looked at for a pattern that is worth while."""
_MOST = 8
"""How many patterns of a kind of statements are kept."""


class AlikeReader:
    """Reads statements of one table by their patterns, which are kept from block to block.

    Args:
        learner: finds the patterns.
        set_clauses: reads what patterns of updates don't have.
    """

    def __init__(self, learner: Learner, set_clauses: SetClauses) -> None:
        self._learner = learner
        self._set_clauses = set_clauses
        # By kind; the one that was found last is the first, because more is known of the columns' values by then.
        self._known: dict[int, list[Pattern]] = {}

    def read(self, found: Statements, rows: Numbers, kind: int) -> tuple[Numbers, Numbers]:
        """Read those that have a pattern; return their numbers, and of these the numbers of those that can't be read.

        Args:
            found: gets the values.
            rows: the numbers of the statements; each has a gap.
            kind: the first character of all.
        """
        known, samples = self._known.setdefault(kind, []), 0
        untried, read, unread = list(known), [rows[:0]], [rows[:0]]
        while len(rows) >= ALIKE and (untried or samples < _SAMPLES):
            if untried:
                pattern: Pattern | None = untried.pop(0)
            else:
                row = rows[(len(rows) - 1) * samples // (_SAMPLES - 1)]
                gaps = found.gaps.alone(int(found.gaps.firsts[row]), int(found.gaps.counts[row]))
                pattern, samples = self._learner.pattern(gaps), samples + 1
            if pattern is None:
                continue
            matched = matches(pattern, found.gaps, rows)
            if len(matched.rows) * _PART < len(rows):
                if pattern in known:
                    known.remove(pattern)
                    known.append(pattern)
                continue
            if pattern not in known:
                known.insert(0, pattern)
                del known[_MOST:]
            keep_matches(found, pattern, matched)
            if pattern.update:
                begins = place_in_text(found.gaps, matched.before, matched.begins)
                last = matched.before + 1
                unread.append(self._set_clauses.read(found, pattern, matched.rows, last, begins))
            read.append(matched.rows)
            rows, samples = rows[~np.isin(rows, matched.rows)], 0
        return np.concatenate(read), np.concatenate(unread)
