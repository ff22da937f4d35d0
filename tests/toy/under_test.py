"""A notebook for the suite that every connector runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from tests.toy.notebook.database.notebook import SCHEMA, Notebook, Page
from tests.toy.registration import registered

Capabilities = TypeVar("Capabilities")
Row = tuple[int, int, str]
NAME = "book"


class NotebookUnderTest(Generic[Capabilities]):
    """The kind of source.

    Args:
        capabilities: what the suite may ask of it.
    """

    name: str = "notebook"
    required: tuple[str, ...] = ("notebook.path",)
    kept: tuple[str, ...] = ()
    is_further_log = False

    def __init__(self, capabilities: Capabilities) -> None:
        self.capabilities = capabilities

    @contextmanager
    def open(self, fixture: Callable[[str], Any]) -> Iterator[NotebookSource]:
        directory: Path = fixture("tmp_path_factory").mktemp("notebook")
        with registered():
            yield NotebookSource(Notebook.make(directory / NAME))

    @contextmanager
    def open_another(self, fixture: Callable[[str], Any], like: object) -> Iterator[NotebookSource]:
        del like  # All have the same name, each in a directory of its own.
        with self.open(fixture) as source:
            yield source


class NotebookSource:
    """A notebook, which one test captures and changes."""

    schema: str = SCHEMA
    quote: str = ""
    lost_log: str = "notebook's log"

    def __init__(self, notebook: Notebook) -> None:
        self._notebook = notebook
        self.options = {"connector": "notebook", "notebook.path": str(notebook.path)}

    def create(self, *tables: str) -> None:
        for table in tables:
            self._notebook.create(table, {"id": "integer", "v": "integer", "pad": "text?"})

    def create_signal_table(self, table: str) -> None:
        self._notebook.create(table, {"id": "text", "type": "text", "data": "text?"})

    def signal(self, table: str, number: str, kind: str, data: str) -> None:
        with self._notebook.page() as page:
            page.insert(table, {"id": number, "type": kind, "data": data})

    @contextmanager
    def writer(self) -> Iterator[NotebookWriter]:
        yield NotebookWriter(self._notebook.page())

    def rows(self, table: str) -> list[Row]:
        return self._notebook.rows(table)

    def lose_log(self) -> None:
        self._notebook.cut_log()

    def away(self) -> dict[str, str]:
        return {"notebook.path": str(self._notebook.path / "nowhere")}

    def refused_login(self, secret: str) -> dict[str, str]:
        raise NotImplementedError("A notebook has no accounts.")

    def created(self) -> list[str]:
        return []

    def connections(self) -> int:
        """Return how many of the notebook's files this process has open."""
        count = 0
        for name in os.listdir("/proc/self/fd"):
            try:
                count += os.readlink(f"/proc/self/fd/{name}").startswith(f"{self._notebook.path}/")
            except OSError:
                continue  # It was closed meanwhile.
        return count

    def cut_connections(self) -> None:
        raise NotImplementedError("A notebook has no connections.")

    def held_log(self) -> str:
        raise NotImplementedError("A notebook keeps its log until it is cut.")


class NotebookWriter:
    """A session whose changes are committed by hand."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        self._page.insert(table, *({"id": key, "v": v, "pad": pad} for key, v, pad in rows))

    def update(self, table: str, key: int, v: int, pad: str | None = None) -> None:
        self._page.update(table, {"id": key}, v=v, **({} if pad is None else {"pad": pad}))

    def delete(self, table: str, key: int) -> None:
        self._page.delete(table, id=key)

    def commit(self) -> None:
        self._page.commit()

    def rollback(self) -> None:
        self._page.rollback()
