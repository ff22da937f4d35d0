"""A consumer that follows one table by its events, as a sink would."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tests.support.interleaving import Sessions, State, is_subsequence

UNAVAILABLE = "__debezium_unavailable_value"


@dataclass
class Follower:
    """Applies micro-batches, each in the order of its events' positions.

    It is there from the signal for the snapshot on: what a table held before, only the snapshot tells.

    Attributes:
        seen: the states that each key went through, by its JSON text.
        begun: whether the signal has come.
    """

    seen: dict[str, list[State]] = field(default_factory=dict)
    begun: bool = False
    _names: dict[str, str] = field(default_factory=dict)

    def apply(self, rows: list[dict[str, Any]], sessions: Sessions) -> None:
        """Apply the events of one micro-batch."""
        for row in sorted(rows, key=lambda row: str(row["position"])):
            self.begun = self.begun or (row["table"] == "signals" and '"execute-snapshot"' in str(row["value"]))
            if not self.begun or row["table"] != sessions.table or row["value"] is None:
                continue
            if row["op"] == "t":
                for states in self.seen.values():
                    states.append(None)
                continue
            after = json.loads(row["value"])["after"]
            states = self.seen.setdefault(row["key"], [None])
            if after is None:
                states.append(None)
                continue
            self._names[row["key"]] = sessions.key_of_version[after["v"]]
            before = states[-1]
            big = after["big"]
            letter = (before[1] if before else "?") if big == UNAVAILABLE else big[:1]
            states.append((after["v"], letter))

    def check(self, sessions: Sessions) -> None:
        """Prove convergence and that no key went back in time."""
        for key, states in self.seen.items():
            name = self._names.get(key)
            if name is not None:
                history = [None, *sessions.history[name]]
                steps = [state for i, state in enumerate(states) if i == 0 or state != states[i - 1]]
                assert is_subsequence(steps, history), f"{key} went back in time: {steps}, but it was {history}"
        final = {self._names[key]: states[-1] for key, states in self.seen.items() if states[-1] is not None}
        assert final == sessions.rows()
