"""Checks the schema registries of a source's converters."""

from __future__ import annotations

from floodmark.config.common import CommonOptions
from floodmark.connectors.contract.findings import Finding
from floodmark.errors import FloodmarkError
from floodmark.schema_registry.client import check_registries

CHECK = "schema registry"


def check_converters(options: CommonOptions) -> list[Finding]:
    """Check that the registries of converters answer, and that these may ask them."""
    found = []
    for converter in dict.fromkeys(one for one in (options.key_avro, options.value_avro) if one is not None):
        try:
            check_registries([converter])
            found.append(Finding(CHECK, "ok", f"{converter.shown_url} answers"))
        except FloodmarkError as exc:
            found.append(Finding(CHECK, "error", exc.what, exc.cure))
    return found
