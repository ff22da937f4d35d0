"""Changes a database in a thread until told to stop."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod

from tests.support.databases import Database, Session
from tests.support.patience import within


class Worker(ABC):
    """Runs transactions, one after the other, in one session; in a new one where it was lost.

    Args:
        database: what is changed.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.transactions = 0
        self.error: BaseException | None = None

    @abstractmethod
    def _transaction(self, session: Session) -> None:
        """Run a transaction, and wait for as long as is wanted between two of them."""

    def start(self) -> None:
        """Start changing rows in a thread."""
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop and wait for the last transaction."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(within(30))
            assert self.error is not None or not self._thread.is_alive(), "The last transaction does not end."
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with self._database.session() as session:
                    while not self._stop.is_set():
                        self._transaction(session)
            except self._database.lost:
                self._stop.wait(0.1)  # the server restarts
            except BaseException as exc:
                self.error = exc
                return
