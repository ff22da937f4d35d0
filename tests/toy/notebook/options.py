"""The options of the notebook connector."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import model_validator

from floodmark.config import debezium
from floodmark.config.common import CommonOptions
from floodmark.config.model import OWN, option


class NotebookOptions(CommonOptions):
    """Options of ``connector=notebook``."""

    accepted = debezium.ACCEPTED
    refused = debezium.REFUSED

    path: str = option("notebook.path", ..., "Directory of the notebook.", OWN)

    @property
    def owner(self) -> str:
        """The name of the source's directory below ``state.dir``."""
        return f"{self.topic_prefix}-notebook-{Path(self.path).name}"

    @model_validator(mode="after")
    def _refuse_what_a_notebook_lacks(self) -> Self:
        lacking = {
            "heartbeat.action.query": bool(self.heartbeat_action_query),
            "incremental.snapshot.read.points": self.incremental_snapshot_read_points != "exact",
            "provide.transaction.metadata": self.provide_transaction_metadata,
            "snapshot.query.mode": self.snapshot_query_mode != "select_all",
        }
        for name, given in lacking.items():
            if given:
                raise ValueError(f"Option '{name}' has a value that the connector 'notebook' doesn't have.")
        return self
