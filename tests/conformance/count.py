"""How much is compared with Debezium: ``python -m tests.conformance.count``."""

from __future__ import annotations

from tests.conformance.cases import cases_of
from tests.conformance.golden import load


def counts(connector: str = "postgres") -> tuple[int, int, int]:
    """Return how many events the goldens hold, of how many cases, and with how many sets of options and settings."""
    cases = cases_of(connector)
    events = sum(len(load(case.name, connector)) for case in cases)
    options = {(case.schemas, *sorted(case.options.items()), *sorted(case.settings.items())) for case in cases}
    return events, len(cases), len(options)


if __name__ == "__main__":
    for connector in ("postgres", "mysql", "mariadb"):
        figures = "{:,} events of Debezium in {} cases with {} sets of options".format(*counts(connector))
        print(f"{connector}: {figures}")
