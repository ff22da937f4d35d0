"""Statements about tables out of others' tests: which of them a server accepts, and what follows from the log.

``python -m tests.support.foreign_ddl mysql|mariadb [FOLDER …]`` runs the statements of all files below the folders on a
real server, without any the server's own tests, which come from Debian's packages. Each file has a database of its own,
and so has each test of a Java file, such as those of Debezium's parsers. After each statement that the server accepts,
the structures that its log tells are compared with those of information_schema.
"""

from __future__ import annotations

import os
import random
import re
import ssl
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, cast

import pymysql

from tests.support.ddl import Follower
from tests.support.debian import Packages, programs
from tests.support.mysql import Flavor, MysqlServer

SUITES = {
    "mysql": Packages(
        "mysql-tests", "sid", (), ("mysql-testsuite",), ("usr/lib/mysql-test/**/*.test", "usr/lib/mysql-test/**/*.inc")
    ),
    "mariadb": Packages(
        "mariadb-tests",
        "bookworm",
        (),
        ("mariadb-test-data",),
        ("usr/share/mysql/mysql-test/**/*.test", "usr/share/mysql/mysql-test/**/*.inc"),
    ),
}
NAMES = ("*.test", "*.inc", "*.sql", "*.ddl", "*.java")
DATABASE = "foreign_ddl"
SLOW_S = 20
MOST_CHARACTERS = 100_000
SHOWN = 600
PROGRESS = 100
SERVERS = int(os.environ.get("FLOODMARK_DDL_SERVERS", "1"))
"""How many servers run the files at the same time."""

# The files are read as UTF-8, whatever they say, so the sessions' character sets stay as they are.
_WANTED = re.compile(
    r"(?:CREATE\s+(?:OR\s+REPLACE\s+)?(?:TABLE|(?:UNIQUE\s+|FULLTEXT\s+|SPATIAL\s+)?INDEX)|ALTER\s+(?:ONLINE\s+|IGNORE\s+)?TABLE"
    r"|DROP\s+(?:TABLE|INDEX)|RENAME\s+TABLES?)\b|SET\s+(?:SESSION\s+|@@(?:SESSION\.)?)?"
    r"(?:sql_mode|explicit_defaults_for_timestamp|default_storage_engine|collation_server"
    r"|default_collation_for_utf8mb4|sql_generate_invisible_primary_key|innodb_strict_mode|foreign_key_checks)\b",
    re.IGNORECASE,
)
# Other databases, what the server must be set up for, what takes long or the machine's disk.
_LEFT_OUT = re.compile(
    r"\b(?:mysql|information_schema|performance_schema|sys)`?\s*\.|\$|\bCONNECTION\s*=|\bDATA\s+DIRECTORY|\bTABLESPACE\b"
    r"|\bTEMPORARY\b|\bENGINE\s*=?\s*(?!innodb\b|'innodb'|default)\w+|\bGLOBAL\b|\bSLEEP\s*\(|\bENCRYPTION\b|\bSELECT\b"
    r"|\bsequence\b|\bSYSTEM\s+VERSIONING|\bPARTITION\b",
    re.IGNORECASE,
)
_COMMAND = re.compile(r"\s*(?:--|#)")
_DELIMITER = re.compile(r"\s*(?:--\s*)?delimiter\s+(\S+)", re.IGNORECASE)
_WORD = re.compile(r"(?:eval|send|query|query_vertical)\s+", re.IGNORECASE)
_JAVA = re.compile(
    r'''"""\n(?P<block>.*?)"""|"(?P<text>(?:[^"\\\n]|\\.)*)"|'(?:[^'\\]|\\.)+'|//[^\n]*|/\*.*?\*/|(?P<test>@Test\b)'''
    r"|(?P<line>System\.lineSeparator\(\))|(?P<plus>\+)|(?P<space>\s+)|(?P<other>[\w.]+|.)",
    re.DOTALL,
)
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_MEANS = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "f": "\f"}


def statements(text: str) -> Iterator[str]:
    """Yield the statements of a file in the language of the servers' tests, or in plain SQL."""
    delimiter, pending = ";", ""
    for line in text.splitlines():
        changed = _DELIMITER.match(line)
        if changed is not None and not pending.strip():
            delimiter = changed[1].removesuffix(delimiter) or delimiter
            continue
        if not pending.strip() and _COMMAND.match(line):
            continue
        pending += line + "\n"
        while delimiter in pending:
            statement, _, pending = pending.partition(delimiter)
            yield _WORD.sub("", statement.strip(), count=1)
        if len(pending) > MOST_CHARACTERS:
            pending = ""
    if pending.strip():
        yield pending.strip()


def java_tests(text: str) -> Iterator[list[str]]:
    """Yield the texts of each test of a Java file; those of which only a part is in the file are left out."""
    found: list[str] = []
    parts: list[str] | None = None
    joined = broken = False
    for match in _JAVA.finditer(text):
        kind = match.lastgroup
        if kind in ("space", None):
            continue
        if kind == "plus":
            joined = True
            continue
        if kind in ("block", "text", "line"):
            if not joined:
                found += [] if parts is None or broken else ["".join(parts)]
                parts, broken = [], False
            elif parts is None:
                parts, broken = [], True
            parts = [*(parts or ()), _java_text(match)]
        elif joined:
            broken = True
        else:
            found += [] if parts is None or broken else ["".join(parts)]
            parts, broken = None, False
        joined = False
        if kind == "test":
            yield found
            found = []
    yield found


def _java_text(literal: re.Match[str]) -> str:
    if literal.lastgroup == "line":
        return "\n"
    text = literal["text"] if literal["block"] is None else textwrap.dedent(literal["block"])
    return _ESCAPED.sub(lambda found: _unescaped(found[1]), text)


def _unescaped(code: str) -> str:
    return chr(int(code[1:], 16)) if len(code) > 1 else _MEANS.get(code, code)


def units(path: Path) -> Iterator[list[str]]:
    """Yield the statements of a file, by what is to have a database of its own."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix != ".java":
        yield list(statements(text))
        return
    for texts in java_tests(text):
        yield [statement for one in texts for statement in statements(one)]


def wanted(statement: str) -> bool:
    """Return whether a statement is about a table's structure, or about what gives such statements their meaning."""
    return _WANTED.match(statement) is not None and _LEFT_OUT.search(statement) is None


class Trial:
    """Runs statements on a server and counts what becomes of them.

    Attributes:
        counts: ``accepted``, ``refused``, ``followed``, ``differing``, ``not understood``.
    """

    def __init__(self, server: MysqlServer) -> None:
        self._server = server
        self.counts: Counter[str] = Counter()
        # A context takes longer to make than a session, of which each test has its own.
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        # The other server has no certificate.
        self._tls: dict[str, Any] = {"ssl": context} if server.flavor == "mysql" else {}
        self._follower = Follower(server)
        self._waiting: list[str] = []

    def run(self, path: Path) -> None:
        """Run the statements of a file in new databases."""
        for unit in units(path):
            found = [text for text in unit if wanted(text)]
            if not any(text.lstrip().lower().startswith("create") for text in found):
                continue
            self._begin()
            for text in found:
                if self._accepts(text):
                    self._follow(path, text)
            self._compare(path)

    def _begin(self) -> None:
        """Make a new database, and a session for it with the server's own settings."""
        try:
            self._make_database()
        except pymysql.OperationalError:
            # A statement that was given up may still hold the old one.
            self._follower.close()
            self._follower = Follower(self._server)
            self._make_database()

    def _make_database(self) -> None:
        self._follower.session.close()
        # Pymysql has no other way to give up a statement.
        self._follower.session = self._server.connect(read_timeout=SLOW_S, charset="utf8mb4", **self._tls)
        for text in (f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}"):
            self._follower.execute(text)
        self._follower.execute("SET lock_wait_timeout = 2")
        assert self._follower.compared() == []

    def _accepts(self, text: str) -> bool:
        try:
            self._follower.execute(text)
        except (pymysql.Error, UnicodeError) as error:
            self.counts["refused"] += 1
            if isinstance(error, pymysql.OperationalError) and error.args[0] in (2006, 2013, 0):
                self._follower.close()
                self._follower = Follower(self._server)
                self._follower.execute(f"USE {DATABASE}")
            return False
        return True

    def _follow(self, path: Path, text: str) -> None:
        if text.lstrip()[:3].lower() == "set":
            return
        self.counts["accepted"] += 1
        self._waiting.append(text)
        # Half of the statements drop tables; that these are gone is seen with the next statement.
        if not text.lstrip()[:10].lower().startswith("drop table"):
            self._compare(path)

    def _compare(self, path: Path) -> None:
        if not self._waiting:
            return
        differences = self._follower.compared()
        self.counts["followed"] += len(self._waiting) - bool(differences)
        if differences:
            kind = "not understood" if "The statement is:" in differences[0] else "differing"
            self.counts[kind] += 1
            texts = (text[:SHOWN] for text in self._waiting)
            print(f"{kind}: {path.name}:", *texts, *(f"    {one[:SHOWN]}" for one in differences), sep="\n", flush=True)
        self._waiting.clear()


def trial(flavor: Flavor, paths: Sequence[Path]) -> Counter[str]:
    """Run the statements of files on a server of their own; print what isn't followed and return the counts."""
    with MysqlServer(flavor, max_allowed_packet="64M") as server:
        made = Trial(server)
        for number, path in enumerate(paths, 1):
            made.run(path)
            if number % PROGRESS == 0:
                print(f"{number} of {len(paths)} files, {dict(sorted(made.counts.items()))}", flush=True)
    return made.counts


def main(arguments: Sequence[str]) -> int:
    """Run all files and print what isn't followed, and the counts."""
    if not arguments or arguments[0] not in SUITES:
        print("usage: python -m tests.support.foreign_ddl mysql|mariadb [FOLDER …]", file=sys.stderr)
        return 2
    flavor = cast(Flavor, arguments[0])
    folders = [Path(name) for name in arguments[1:]] or [programs(SUITES[flavor]).tree]
    paths = sorted({path for folder in folders for name in NAMES for path in folder.rglob(name)})
    # A run that is ended early has statements of all kinds.
    random.Random(0).shuffle(paths)
    with ProcessPoolExecutor(SERVERS) as pool:
        parts = pool.map(trial, [flavor] * SERVERS, [paths[number::SERVERS] for number in range(SERVERS)])
        counts = sum(parts, Counter[str]())
    print(f"{flavor}: {len(paths)} files, {dict(sorted(counts.items()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
