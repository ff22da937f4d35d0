"""A JVM of our own, in which Oracle's Java interface runs.

Spark's Python processes have no way into Spark's JVM, and Oracle's libraries must be loaded from the start. So a JVM is
started beside this process, which py4j calls: on the loopback interface, with a token that only this process is told.
It ends when its standard input does, so also when this process is killed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, find_jar_path

from floodmark.errors import ConnectError, SourceStateError

_SERVER = "py4j.GatewayServer"
_SOURCE = "LcrPump.java"
_COMPILER = "jdk.compiler/com.sun.tools.javac.Main"
_NEEDED = {"oracle.streams": "xstreams.jar", "oracle.jdbc": "ojdbc11.jar", "oracle.sql": "ojdbc11.jar"}
_STOP_S = 5.0
_JAVA = "Set xstream.java to the java of a JDK of version 17 or later."
_SHOWN_CHARACTERS = 500


def java_of(given: str | None) -> str:
    """Return the path of ``java``: the one that is given, that of ``JAVA_HOME``, or that of ``PATH``.

    Raises:
        SourceStateError: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    wanted = given or (str(Path(home) / "bin" / "java") if home else "java")
    found = shutil.which(wanted)
    if found is None:
        raise SourceStateError(f"XStream needs Java, and there is no '{wanted}'.", _JAVA)
    return found


class Jvm:
    """A JVM with the pump's class.

    Args:
        java: the path of ``java``.
        class_path: jars and folders.
        library_path: the folder of Oracle's Instant Client; None: where the system looks.
        environment: variables that it gets besides this process's own; what is secret is handed over here.

    Raises:
        SourceStateError: it doesn't start, or lacks a class.
    """

    def __init__(self, java: str, class_path: str, library_path: str | None, environment: Mapping[str, str]) -> None:
        self._java = java
        self._gateway: JavaGateway | None = None
        path = os.pathsep.join((find_jar_path(), class_path, compiled(java, class_path).name))
        libraries = [] if library_path is None else [f"-Djava.library.path={library_path}"]
        command = [java, "-Duser.timezone=UTC", *libraries, "-cp", path, _SERVER]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (the JVM writes to it as long as it runs)
        try:
            self._process = subprocess.Popen(
                [*command, "--die-on-broken-pipe", "--enable-auth", "0"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**os.environ, **_loader_path(library_path), **environment},
                start_new_session=True,
            )
        except OSError as exc:
            self._errors.close()
            raise SourceStateError(f"Java can't be started ('{java}'): {exc}.", _JAVA) from None
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    @property
    def pump(self) -> Any:
        """The pump's class."""
        return self._jvm.floodmark.LcrPump

    def close(self) -> None:
        """End it."""
        gateway, self._gateway = self._gateway, None
        if gateway is not None:
            gateway.close()
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            # Oracle's library may hold it.
            process.kill()
            process.wait()
        process.stdout.close()
        self._errors.close()

    @property
    def _jvm(self) -> Any:
        if self._gateway is None:
            raise ConnectError("The JVM in which XStream runs was ended.")
        return self._gateway.jvm

    def _connect(self) -> None:
        """Connect to py4j's server in it, which writes its port and its token first."""
        stdout = self._process.stdout
        assert stdout is not None
        port, token = stdout.readline().strip(), stdout.readline().strip()
        if not port.isdigit() or not token:
            raise SourceStateError(f"Java doesn't start ('{self._java}'): {self._said() or 'it has ended'}.", _JAVA)
        parameters = GatewayParameters(address="127.0.0.1", port=int(port), auth_token=token.decode())
        self._gateway = JavaGateway(gateway_parameters=parameters)

    def _said(self) -> str:
        """Return what it has written about an error, on one line."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_S)
        self._errors.seek(0)
        return " ".join(self._errors.read().decode(errors="replace").split())[:_SHOWN_CHARACTERS].rstrip(".")


@cache
def compiled(java: str, class_path: str) -> tempfile.TemporaryDirectory[str]:
    """Return a folder with the pump's class, compiled against the jars that are there; it lasts as long as the process.

    Args:
        java: the path of ``java``.
        class_path: jars and folders.

    Raises:
        SourceStateError: it can't be compiled.
    """
    folder = tempfile.TemporaryDirectory(prefix="floodmark-xstream-")
    source = Path(folder.name) / _SOURCE
    source.write_bytes(files(__package__).joinpath(_SOURCE).read_bytes())
    options = ["-proc:none", "-nowarn", "-encoding", "UTF-8", "-d", folder.name, "-cp", class_path]
    try:
        done = subprocess.run([java, "-m", _COMPILER, *options, str(source)], capture_output=True, check=False)
    except OSError as exc:
        raise SourceStateError(f"Java can't be started ('{java}'): {exc}.", _JAVA) from None
    if done.returncode != 0:
        raise _not_compiled(java, " ".join((done.stderr + done.stdout).decode(errors="replace").split()))
    return folder


def _not_compiled(java: str, said: str) -> SourceStateError:
    if "jdk.compiler" in said:
        return SourceStateError(f"Java at '{java}' has no compiler: it isn't a JDK.", _JAVA)
    for package, jar in _NEEDED.items():
        if f"package {package} does not exist" in said:
            return SourceStateError(
                f"The classes {package}.* aren't on the class path, or can't be read.",
                f"xstream.class.path must name {jar} of Oracle's Instant Client, beside the other jars.",
            )
    return SourceStateError(
        f"What is on the class path isn't Oracle's interface of XStream: {said[:_SHOWN_CHARACTERS]}",
        "xstream.class.path must name ojdbc11.jar and xstreams.jar of one release of Oracle's Instant Client.",
    )


def _loader_path(library_path: str | None) -> dict[str, str]:
    """Return the variable by which Oracle's library finds the others that it needs."""
    if library_path is None:
        return {}
    known = os.environ.get("LD_LIBRARY_PATH")
    return {"LD_LIBRARY_PATH": os.pathsep.join([library_path, *([known] if known else [])])}
