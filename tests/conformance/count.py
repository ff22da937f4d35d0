"""How much is compared with Debezium: ``python -m tests.conformance.count``."""

from __future__ import annotations

from tests.conformance.cases import CASES
from tests.conformance.golden import load


def counts() -> tuple[int, int, int]:
    """Return how many events the goldens hold, of how many cases, and with how many sets of options."""
    events = sum(len(load(case.name)) for case in CASES)
    options = {(case.schemas, *sorted(case.options.items())) for case in CASES}
    return events, len(CASES), len(options)


if __name__ == "__main__":
    print("{:,} events of Debezium in {} cases with {} sets of options, compared on each server".format(*counts()))
