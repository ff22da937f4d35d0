from __future__ import annotations

import numpy as np

from floodmark.sinks.delta.planning.kept import Kept


def test_what_was_not_used_for_longest_goes() -> None:
    loaded: list[str] = []
    kept: Kept[np.ndarray] = Kept(3000)

    def get(name: str, size: int = 1000) -> int:
        def load() -> np.ndarray:
            loaded.append(name)
            return np.zeros(size, np.uint8)

        return len(kept.get(name, load))

    for name in ("a", "b", "c", "a", "d", "a", "c", "b"):
        assert get(name) == 1000
    assert loaded == ["a", "b", "c", "d", "b"]
    assert get("large", 3001) == 3001
    get("a")
    assert loaded == ["a", "b", "c", "d", "b", "large"]
