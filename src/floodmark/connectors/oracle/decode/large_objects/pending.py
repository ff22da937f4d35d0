"""A change of a row to which more may come: pieces of its large values, and statements that set them."""

from __future__ import annotations

from dataclasses import dataclass, field

from floodmark.connectors.oracle.decode.large_objects.content import Content, Unknown, Value
from floodmark.connectors.oracle.mining.operations import Operation


@dataclass(frozen=True)
class Merged:
    """An event's change, of which all is known.

    Numbers of rows are those in ``TableRows``.

    Attributes:
        first: the row that the event is named by.
        last: the last row that changed it.
        ended: the place of the row before which it was complete; None: that is the commit.
        operation: insert, update or delete.
        sources: by column, the row whose new value it has.
        values: by column, values that pieces make.
    """

    first: int
    last: int
    ended: int | None
    operation: Operation
    sources: list[int]
    values: dict[int, Value | Unknown | None]


@dataclass
class Pending:
    """A change of a row.

    Attributes:
        first: the row of the view that it began with.
        operation: what that is.
        row_id: ``ROW_ID``, as soon as it is known.
        sources: by column, the row whose new value it has.
        contents: by column, values of which pieces have come.
        last: the last row that changed it.
        is_complete: whether nothing comes to it any more.
    """

    first: int
    operation: int
    row_id: str | None
    sources: list[int]
    last: int
    contents: dict[int, Content] = field(default_factory=dict)
    is_complete: bool = False

    @property
    def is_noop(self) -> bool:
        """Whether it only locks a large object."""
        only_first = all(row == self.first for row in self.sources)
        return self.operation == Operation.SELECT_LOB_LOCATOR and only_first and not self.contents

    def merged(self, ended: int | None) -> Merged:
        """Return all of it."""
        operation = Operation(self.operation)
        if operation not in (Operation.INSERT, Operation.DELETE):
            operation = Operation.UPDATE
        values = {column: one.value() for column, one in self.contents.items()}
        return Merged(self.first, self.last, ended, operation, self.sources, values)
