"""The entry of the notebook connector, as an installed package would register it."""

from __future__ import annotations

from floodmark.connectors.registry import ConnectorSpec

SPEC = ConnectorSpec(
    name="notebook",
    package="tests.toy.notebook",
    options="NotebookOptions",
)
