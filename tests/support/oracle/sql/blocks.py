"""PL/SQL blocks: calls of the packages that a connector needs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.support.oracle.errors import OracleError
from tests.support.oracle.model import dictionaries
from tests.support.oracle.model.database import ROOT
from tests.support.oracle.sql.result import Result

if TYPE_CHECKING:
    from tests.support.oracle.sql.session import Session

_BLOCK = re.compile(r"BEGIN\s+(.*?)\s*END\s*;?", re.IGNORECASE | re.DOTALL)
_CALL = re.compile(r"([A-Za-z_$][\w$.]*)\s*(?:\((.*)\))?", re.DOTALL)
_ARGUMENT = re.compile(r"\s*(?:(\w+)\s*=>\s*)?(.*?)\s*", re.DOTALL)
_NUMBER = re.compile(r"'?(\d+)'?")
_FILE = (("DICTIONARY_FILENAME", "0"), ("DICTIONARY_LOCATION", "1"))


def run(session: Session, text: str) -> Result:
    """Run a block.

    Raises:
        OracleError: it calls what isn't known.
    """
    found = _BLOCK.fullmatch(text.strip())
    if found is None:
        raise OracleError(900, text=f"block not understood by the stand-in: {text[:200]}")
    for statement in _split(found.group(1), ";"):
        if statement.strip():
            _call(session, statement.strip())
    return Result()


def _call(session: Session, text: str) -> None:
    found = _CALL.fullmatch(text)
    if found is None:
        raise OracleError(900, text=f"statement not understood by the stand-in: {text[:200]}")
    name = found.group(1).upper().removeprefix("SYS.")
    arguments = [_ARGUMENT.fullmatch(one) for one in _split(found.group(2) or "", ",") if one.strip()]
    named = {(one.group(1) or str(place)).upper(): one.group(2) for place, one in enumerate(arguments) if one}
    if name == "DBMS_METADATA.SET_TRANSFORM_PARAM":
        values = list(named.values())
        if "SQLTERMINATOR" in values[1]:
            session.sql_terminator = values[2].lower() == "true"
        if "DEFAULT" in values[1]:
            session.sql_terminator = False
        return
    package, _, procedure = name.partition(".")
    if name == "DBMS_LOGMNR_D.BUILD":
        session.require(package)
        _build(session, named)
        return
    if package == "DBMS_FLASHBACK":
        _look_back(session, procedure, named)
        return
    if package != "DBMS_LOGMNR":
        raise OracleError(6550, name)
    session.require(package)
    if session.database.pluggable and session.container != ROOT:
        raise OracleError(65040)
    _mine(session, procedure, named)


def _build(session: Session, named: dict[str, str]) -> None:
    """Write a dictionary into the logs, or into a file in a directory."""
    database = session.database
    if database.pluggable and session.container != ROOT:
        raise OracleError(65040)
    if "STORE_IN_REDO_LOGS" in _constants(named.get("OPTIONS", "0")):
        dictionaries.write_into_logs(database, session.thread)
        return
    name, location = (_text(named.get(key, named.get(place, "''"))) for key, place in _FILE)
    if location not in database.directories:
        raise OracleError(29280)
    database.dictionary_files[f"{database.directories[location]}/{name}"] = dictionaries.made_of(database)


def _look_back(session: Session, procedure: str, named: dict[str, str]) -> None:
    session.require("DBMS_FLASHBACK")
    if procedure == "ENABLE_AT_SYSTEM_CHANGE_NUMBER":
        (argument,) = named.values()
        session.looks_back_to = _scn(argument)
    elif procedure == "DISABLE":
        session.looks_back_to = None
    else:
        raise OracleError(6550, f"DBMS_FLASHBACK.{procedure}")


def _mine(session: Session, procedure: str, named: dict[str, str]) -> None:
    miner = session.logminer
    if procedure == "ADD_LOGFILE":
        options = _constants(named.pop("OPTIONS", "DBMS_LOGMNR.ADDFILE"))
        miner.add(_text(named.pop("LOGFILENAME")), "NEW" in options)
    elif procedure == "REMOVE_LOGFILE":
        miner.remove(_text(named.pop("LOGFILENAME")))
    elif procedure == "START_LOGMNR":
        start, end = _scn(named.pop("STARTSCN", "0")), _scn(named.pop("ENDSCN", "0"))
        options = _constants(named.pop("OPTIONS", "0"))
        miner.start(start, end, options, _text(named.pop("DICTFILENAME", "''")))
    elif procedure == "END_LOGMNR":
        miner.end()
    else:
        raise OracleError(6550, f"DBMS_LOGMNR.{procedure}")
    if named:
        raise OracleError(6550, f"{procedure}({', '.join(named)})")


def _text(argument: str) -> str:
    if not (argument.startswith("'") and argument.endswith("'") and len(argument) > 1):
        raise OracleError(900, text=f"no text: {argument}")
    return argument[1:-1].replace("''", "'")


def _scn(argument: str) -> int:
    found = _NUMBER.fullmatch(argument)
    if found is None:
        raise OracleError(1281)
    return int(found.group(1))


def _constants(argument: str) -> list[str]:
    names = [one.strip().upper().rpartition(".")[2] for one in argument.split("+")]
    return [one for one in names if one not in {"0", "ADDFILE"}]


def _split(text: str, separator: str) -> list[str]:
    """Cut a text at separators that are neither in texts nor in parentheses."""
    parts, depth, quoted, begin = [], 0, False, 0
    for at, character in enumerate(text):
        if character == "'":
            quoted = not quoted
        elif quoted:
            continue
        elif character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        elif character == separator and not depth:
            parts.append(text[begin:at])
            begin = at + 1
    return [*parts, text[begin:]]
