"""Calls of Debezium's classes and their results: recorded ones, and as many new ones as are asked for."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.conformance.oracle.debezium_classes import called
from tests.conformance.oracle.golden import GOLDENS

INPUTS = int(os.environ.get("FLOODMARK_REDO_INPUTS", "20000"))
"""How many new inputs each generated test has."""
FAILED = "exception"
"""What the result of a call says that Debezium refuses."""
_BLOCK, _SEED = 20_000, 1
Call = list[Any]


@dataclass(frozen=True)
class RecordedCalls:
    """The calls of one golden file.

    Attributes:
        name: of the golden file.
        count: how many calls it has.
        caller: returns what makes random calls.
    """

    name: str
    count: int
    caller: Callable[[random.Random], Callable[[], Call]]

    def recorded(self) -> list[tuple[Call, Any]]:
        """Return the calls of the golden file, each with its result."""
        with (GOLDENS / self.name).open(encoding="utf-8") as file:
            found = [(one["call"], one["result"]) for one in map(json.loads, file)]
        assert len(found) == self.count
        return found

    def generated(self) -> Iterator[tuple[Call, Any]]:
        """Yield new calls, each with its result; this needs a JDK."""
        make = self.caller(random.Random())
        for done in range(0, INPUTS, _BLOCK):
            calls = [make() for _ in range(min(_BLOCK, INPUTS - done))]
            yield from zip(calls, called(calls), strict=True)

    def record(self) -> None:
        """Write the golden file."""
        make = self.caller(random.Random(_SEED))
        calls = [make() for _ in range(self.count)]
        with (GOLDENS / self.name).open("w", encoding="utf-8") as file:
            for call, result in zip(calls, called(calls), strict=True):
                file.write(json.dumps({"call": call, "result": result}, ensure_ascii=False) + "\n")
