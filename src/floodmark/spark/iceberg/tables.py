"""The Iceberg tables of a mirror: through Spark, or through a catalogue that Floodmark itself asks."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping

from pyspark.sql import SparkSession

from floodmark.errors import ConfigError
from floodmark.sinks.delta.format.data_files import DataFiles
from floodmark.sinks.delta.planning.target_rows import KeptRows
from floodmark.sinks.delta.protocols import MakeWriter, TableListener, TableWriter
from floodmark.sinks.delta.rebuilding.marks import MarksOfBatch
from floodmark.sinks.delta.rebuilding.shadows import ShadowedWriter
from floodmark.sinks.delta.stores import TableFolder, table_folder
from floodmark.sinks.delta.upkeep import AtOnce
from floodmark.sinks.iceberg.applying import ByOwnRows
from floodmark.sinks.iceberg.catalogues.catalogue import Catalogue
from floodmark.sinks.iceberg.catalogues.table import CatalogueTable
from floodmark.sinks.iceberg.catalogues.target import CatalogueTarget
from floodmark.sinks.iceberg.columns import renamed_columns
from floodmark.sinks.iceberg.data_files import IcebergFiles
from floodmark.sinks.iceberg.layout import Layout
from floodmark.sinks.iceberg.marks import IcebergMarks
from floodmark.sinks.iceberg.protocols import CatalogTable
from floodmark.sinks.iceberg.rebuilding.shadow import IcebergShadow
from floodmark.sinks.iceberg.rebuilding.target import RebuildableIcebergTable
from floodmark.sinks.iceberg.writer import IcebergWriter
from floodmark.sinks.options import MirrorOptions
from floodmark.sinks.verifiable import VerifiableTarget
from floodmark.spark.iceberg.merging import ByMerge
from floodmark.spark.iceberg.runtime import require_catalogue, require_iceberg
from floodmark.spark.iceberg.table import IcebergTable
from floodmark.spark.iceberg.verifiable import IcebergTarget
from floodmark.spark.targets.names import spark_folder
from floodmark.spark.targets.sessions import Sessions


class IcebergTables:
    """Makes what a mirror's tables are written and looked up with.

    Args:
        sessions: sessions of Spark.
        location: the mirror's path, or its URI.
        options: the mirror's.
    """

    def __init__(self, sessions: Sessions, location: str, options: MirrorOptions) -> None:
        self._sessions = sessions
        self._location = location
        self._options = options
        self._schema = options.catalog_schema or ""
        self._soft = options.mode == "soft"
        self._catalogue = Catalogue(self._schema, options.catalogue) if options.catalogue else None

    def of(self, name: str) -> CatalogTable:
        """Return a table.

        Args:
            name: the source's name of it, ``schema.table``.
        """
        return self._of(name, self._files(name))

    def writers(self, layouts: MutableMapping[str, Layout]) -> MakeWriter:
        """Return what makes the writers of tables.

        Args:
            layouts: gets the columns of tables that Floodmark writes itself, for the tasks.
        """
        kept, options = KeptRows(), self._options
        marks, pool = MarksOfBatch(self._location), AtOnce()

        def made(
            name: str, folder: TableFolder, application: str, listener: TableListener, written: int | None
        ) -> TableWriter:
            if options.engine == "spark":
                merged = self._by_spark(name)
                merging = ByMerge(merged, DataFiles(folder.store, name), self._soft)
                return IcebergWriter(merged, merging, application, options, listener, written)
            files = self._files(name)
            table = self._of(name, files)
            applying = ByOwnRows(table, files, options, kept, layouts)
            target = IcebergWriter(table, applying, application, options, listener, written)

            def shadow(log_folder: TableFolder) -> IcebergShadow:
                own = self._files(name)
                looked_at, vectors = self._of(name, own), options.has_vectors
                return IcebergShadow(looked_at, own, folder, log_folder, application, vectors, pool)

            return ShadowedWriter(name, target, shadow, marks)

        return made

    def _of(self, name: str, files: IcebergFiles) -> CatalogTable:
        if self._catalogue is None:
            return self._by_spark(name)
        return CatalogueTable(self._catalogue, name, files, self._soft)

    def _by_spark(self, name: str) -> IcebergTable:
        return IcebergTable(self._sessions, self._location, name, self._schema, self._soft)

    def _files(self, name: str) -> IcebergFiles:
        return iceberg_files(self._location, name, self._options)


def iceberg_files(location: str, name: str, options: MirrorOptions, layout: Layout | None = None) -> IcebergFiles:
    """Return the data files of a table that Floodmark writes itself.

    Args:
        location: the mirror's path, or its URI.
        name: the source's name of the table, ``schema.table``.
        options: the mirror's.
        layout: the table's columns, if they are known.
    """
    renamed = renamed_columns(options.mode == "soft")
    return IcebergFiles(table_folder(location, name).store, spark_folder(location, name), name, layout, renamed)


def rebuildable_table(
    location: str, options: MirrorOptions, name: str, query: str, session: SparkSession | None
) -> RebuildableIcebergTable:
    """Return a table as one that can be rebuilt.

    Args:
        location: the mirror's path, or its URI.
        options: the mirror's.
        name: the source's name of the table, ``schema.table``.
        query: the id of the query that writes it.
        session: Spark's, with the catalogue, unless the options name that.

    Raises:
        ConfigError: there is no such place, or there is no session.
    """
    files, soft = iceberg_files(location, name, options), options.mode == "soft"
    table: CatalogTable
    target: VerifiableTarget
    if options.catalogue:
        require_catalogue(options)
        table = CatalogueTable(Catalogue(options.catalog_schema or "", options.catalogue), name, files, soft)
        target = catalogue_targets(location, options)(name)
    else:
        known = required_session(session, options)
        # Spark looks up a catalogue's properties in the active session, whichever it is asked with.
        table = IcebergTable(Sessions(known, active=True), location, name, options.catalog_schema or "", soft)
        target = IcebergTarget(known, location, options, name)
    marks = IcebergMarks(location, lambda _: table)
    return RebuildableIcebergTable(location, name, table, files, target, marks, query)


def required_session(session: SparkSession | None, options: MirrorOptions) -> SparkSession:
    """Return a session that can read a mirror's tables.

    Args:
        session: the active one, if there is any.
        options: the mirror's.

    Raises:
        ConfigError: there is none, or it lacks the catalogue.
    """
    if session is None:
        raise ConfigError(
            "Only a session of Spark with the catalogue can read Iceberg tables, and none is active.",
            "Start one with the properties that the query's has.",
        )
    require_iceberg(session, options.catalog_schema or "")
    return session


def catalogue_targets(location: str, options: MirrorOptions) -> Callable[[str], CatalogueTarget]:
    """Return what returns the targets of a mirror whose options name the catalogue, to be compared with the source.

    Args:
        location: the mirror's path, or its URI.
        options: the mirror's.
    """
    catalogue = Catalogue(options.catalog_schema or "", options.catalogue)

    def of(name: str) -> CatalogueTable:
        return CatalogueTable(catalogue, name, iceberg_files(location, name, options), options.mode == "soft")

    marks = IcebergMarks(location, of)
    return lambda name: CatalogueTarget(location, spark_folder(location, name), name, of(name), marks)
