"""The same cases with the log from an XStream outbound server."""

from __future__ import annotations

from dataclasses import replace

from tests.conformance.oracle.cases.replicated import REPLICATED

OUTBOUND = tuple(replace(one, adapter="xstream", compact=True) for one in REPLICATED)
