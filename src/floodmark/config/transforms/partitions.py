"""Options of Debezium's transform that decides on partitions."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from floodmark.config.model import Options, Words, option


class PartitionRoutingOptions(Options):
    """Options of ``io.debezium.transforms.partitions.PartitionRouting``."""

    partition_payload_fields: Words = option(
        "partition.payload.fields",
        ...,
        "The fields that decide, such as `change.id`: that of the new row, or of the old one of a delete.",
    )
    partition_topic_num: int = option("partition.topic.num", ..., "How many partitions the topics have.", ge=1)
    partition_hash_function: Literal["java", "murmur"] = option(
        "partition.hash.function", "java", "How values are hashed."
    )

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        for path in self.paths:
            if "" in path:
                raise ValueError(
                    f"Option 'partition.payload.fields' is wrong: '{'.'.join(path)}' has nothing on one side of a dot."
                )
        if not self.paths:
            raise ValueError("Option 'partition.payload.fields' must not be empty.")
        return self

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """The names of each field and of those that it is within."""
        return tuple(tuple(part.strip() for part in text.split(".")) for text in self.partition_payload_fields)
