"""An outbound server, by Oracle's Java interface in a JVM of our own."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError

from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.xstream.failures import bridge_error, connect_error
from floodmark.connectors.oracle.xstream.jvm import Jvm, java_of
from floodmark.connectors.oracle.xstream.lcrs import read_lcrs

_ERRORS = (Py4JError, OSError)
_DETACH_MS = 3000
_MOST_WAIT_S = 1.0


class OutboundServer:
    """A ``LcrSource``.

    Args:
        options: the source's options.
    """

    def __init__(self, options: OracleOptions) -> None:
        assert options.outbound_server is not None
        self._options = options
        self._name = options.outbound_server
        self._lock = threading.Lock()
        self._jvm: Jvm | None = None
        self._pump: Any = None

    @property
    def pid(self) -> int | None:
        """The JVM's process; None: there is none."""
        return None if self._jvm is None else self._jvm.pid

    def attach(self, position: bytes | None, scn: int) -> None:
        """Start the JVM, connect, and attach."""
        self.connect()
        try:
            self._pump.attach(self._name, position, str(scn))
        except _ERRORS as exc:
            error = bridge_error(exc, "attaching to the outbound server", self._name)
            self.detach()
            raise error from None

    def connect(self) -> None:
        """Start the JVM and connect to the database, without attaching.

        Raises:
            SourceStateError: Java, a jar or a library is missing.
            ConnectError: the database can't be reached.
        """
        options = self._options
        secret = options.password
        environment = {
            "FLOODMARK_XSTREAM_URL": f"jdbc:oracle:oci:@{options.address}",
            "FLOODMARK_XSTREAM_USER": options.user,
            "FLOODMARK_XSTREAM_PASSWORD": "" if secret is None else secret.get_secret_value(),
        }
        java = java_of(options.xstream_java)
        self._jvm = Jvm(java, options.xstream_class_path or "", options.xstream_library_path, environment)
        try:
            self._pump = self._jvm.pump.connect()
        except _ERRORS as exc:
            error = connect_error(exc, options.place, options.user, options.connect_timeout_ms, self._name)
            self.detach()
            raise error from None

    def receive(self, timeout: float) -> pa.Table:
        """Return the records that have come."""
        try:
            lines = self._pump.receive(int(min(timeout, _MOST_WAIT_S) * 1000))
        except _ERRORS as exc:
            raise bridge_error(exc, "receiving records", self._name) from None
        return read_lcrs(bytes(lines))

    def acknowledge(self, position: bytes) -> None:
        """Let the server forget what comes up to a position; whether it was told, only a later call shows."""
        with self._lock:
            pump = self._pump
            if pump is None:
                return
            try:
                pump.processed(position)
            except _ERRORS as exc:
                raise bridge_error(exc, "telling what was delivered", self._name) from None

    def detach(self) -> None:
        """Detach, and end the JVM, whatever state it is in."""
        with self._lock:
            pump, self._pump = self._pump, None
            jvm, self._jvm = self._jvm, None
        if jvm is None:
            return
        try:
            if pump is not None:
                pump.detach(_DETACH_MS)
        except _ERRORS:
            return  # it ends with its process
        finally:
            jvm.close()
