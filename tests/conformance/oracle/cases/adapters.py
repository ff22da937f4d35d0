"""Which cases of the adapter ``logminer`` are recorded with the others, too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from tests.conformance.oracle.cases.case import Case

_ONLY_BUFFERED = re.compile(
    r"large_objects_differences|snapshots/incremental.*|"
    r"services/(filtered_by_signal|incremental_while_changes_come)"
)
"""Names of cases about which rows are put together here, which LogMiner itself does with the other adapter; and those
with incremental snapshots, which Debezium's adapter didn't deliver on the stand-in within a minute."""
_NOT_REPLICATED = re.compile(
    r"snapshots/unsupported_(skip|warn)|edges/floats|large_objects_(differences|random|base64.*)|"
    r"snapshots/blocking"
)
"""Names of cases with what OpenLogReplicator never shows, or cannot show: infinities aren't JSON; and those with
blocking snapshots, which Debezium's adapter didn't deliver on the stand-in within a minute."""
_REFUSED = re.compile(r"log\.mining\.(strategy|(username|clientid)\..*)")
"""Options that make no sense with OpenLogReplicator."""
_NO_EFFECT = re.compile(r"log\.mining\..*|lob\.enabled|query\.fetch\.size|snapshot\.fetch\.size")
"""Options without effect there: cases that have no others differ from other cases in nothing."""


def of_other_adapters(cases: Iterable[Case]) -> Iterator[Case]:
    """Yield cases of ``logminer`` as those of the other adapters that can take them."""
    for one in cases:
        if one.adapter != "logminer":
            continue
        if not _ONLY_BUFFERED.fullmatch(one.name):
            yield replace(one, adapter="logminer_unbuffered", compact=True)
        if _is_replicated(one):
            yield replace(one, adapter="olr", compact=True)


def _is_replicated(case: Case) -> bool:
    if _NOT_REPLICATED.fullmatch(case.name) or any(map(_REFUSED.fullmatch, case.options)):
        return False
    without = [name for name in case.options if _NO_EFFECT.fullmatch(name)]
    return case.name.startswith("generated/") or not without or len(without) < len(case.options)
