"""A catalogue that is asked through pyiceberg."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

from floodmark.errors import ConfigError, FloodmarkError, TargetDamagedError, TargetError, describe
from floodmark.redact import without_secret_values
from floodmark.sinks.iceberg.protocols import Gone

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

_CHANGED = (
    "CommitFailedException",
    "CommitStateUnknownException",
    "NoSuchTableError",
    "TableAlreadyExistsError",
)
"""Errors of pyiceberg after which the table is to be looked at again."""
_REFUSED = (
    "AuthorizationExpiredError",
    "BadRequestError",
    "ForbiddenError",
    "NotInstalledError",
    "OAuthError",
    "UnauthorizedError",
    "ValidationException",
)
"""Those after which nothing was done, and won't be when it is tried again."""


class CatalogueError(Exception):
    """A catalogue, or a file of a table's metadata, can't be used; the cause says why.

    Args:
        reason: why, without secrets.
        is_conflict: whether somebody else has changed the table, or the outcome isn't known.
    """

    def __init__(self, reason: str, is_conflict: bool) -> None:
        super().__init__(reason)
        self.is_conflict = is_conflict


class Catalogue:
    """A catalogue, to which nothing is sent before it is asked for.

    Args:
        schema: its name and that of a schema, such as ``lake.shop``.
        properties: what pyiceberg is told of it, such as ``type`` and ``uri``.
    """

    def __init__(self, schema: str, properties: Mapping[str, str]) -> None:
        self.name, self.schema = schema.split(".", maxsplit=1)
        self._properties = properties
        self._client: Catalog | None = None
        self._lock = Lock()

    @property
    def client(self) -> Catalog:
        """Pyiceberg's own; raises what that raises."""
        from pyiceberg.catalog import load_catalog

        with self._lock:
            if self._client is None:
                self._client = load_catalog(self.name, **self._properties)
            return self._client

    @contextmanager
    def asked(self, unknown_is_conflict: bool = False) -> Iterator[None]:
        """Make a ``CatalogueError`` of whatever pyiceberg raises: its errors have no class in common.

        Args:
            unknown_is_conflict: whether other errors, too, may come after the catalogue has done what it was asked for.
        """
        try:
            yield
        except (CatalogueError, FloodmarkError, Gone):
            raise
        except Exception as error:
            name = type(error).__name__
            conflict = name in _CHANGED or (unknown_is_conflict and name not in _REFUSED)
            raise CatalogueError(self._shown(error), conflict) from error

    def prove_usable(self) -> None:
        """Check that it can be asked, and has the schema.

        Raises:
            ConfigError: it can't, or hasn't.
        """
        try:
            with self.asked():
                exists = self.client.namespace_exists(self.schema)
        except CatalogueError as error:
            raise ConfigError(
                f"The Iceberg catalogue '{self.name}' can't be used: {error}.",
                "Check the mirror's options that begin with 'catalog.', and whether the catalogue can be reached.",
            ) from error
        if not exists:
            raise ConfigError(
                f"The mirror's option catalog.schema is '{self.name}.{self.schema}', which the catalogue doesn't have.",
                "Create the schema, or correct the name.",
            )

    def failure(self, table: str, error: Exception) -> TargetError:
        """Return the error for a table that can't be written.

        Args:
            table: the table's name.
            error: a ``CatalogueError``.
        """
        if isinstance(error.__cause__, FileNotFoundError):
            return TargetDamagedError(
                f"A file of the metadata of the Iceberg table '{table}' is gone: {error}.",
                "Put it back, or drop the table, and start the query with missing.tables=read.",
            )
        return TargetError(
            f"The Iceberg table '{table}' can't be written: {error}.",
            "See to it that the catalogue and its files can be reached, and start the query again. Nothing is lost.",
        )

    def _shown(self, error: Exception) -> str:
        """Return what an error says, in one line without secrets."""
        text = describe(error).strip() or type(error).__name__
        return without_secret_values(text.splitlines()[0], self._properties).rstrip(".")
