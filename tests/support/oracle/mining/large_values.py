"""SQL_REDO of the records that large values have apart from their rows.

Oracle's documentation doesn't describe it. The forms are those that programs which read a real LogMiner have written
down in their sources and tests; where only their parsers are known, the form is what these accept.
"""

from __future__ import annotations

from tests.support.oracle.model.large_values import Content, Part
from tests.support.oracle.model.redo import Operation
from tests.support.oracle.model.tables import Structure

_LETTERS = {"CLOB": "c", "NCLOB": "nc", "BLOB": "b"}
_DECLARED = (
    "DECLARE \n loc_c CLOB; \n buf_c VARCHAR2(6156); \n loc_b BLOB; \n buf_b RAW(6156); \n loc_nc NCLOB; \n "
    "buf_nc NVARCHAR2(6156); \n e_len NUMBER; \nBEGIN\n "
)


def statement_of_part(operation: Operation, part: Part, structure: Structure, target: str, where: str) -> str | None:
    """Return the text of a record.

    Args:
        operation: what the record is.
        part: what it says.
        structure: of the table.
        target: the table's name, in quotes.
        where: conditions that identify the row.
    """
    letter = _LETTERS.get(structure.column(part.column).type.base, "")
    match operation:
        case Operation.SELECT_LOB_LOCATOR:
            return f'{_DECLARED}select "{part.column}" into loc_{letter} from {target} where {where} for update;'
        case Operation.LOB_WRITE:
            assert part.data is not None
            return (
                f" buf_{letter} := {_literal(part.data)}; \n"
                f"  dbms_lob.write(loc_{letter}, {part.length}, {part.offset}, buf_{letter});"
            )
        case Operation.LOB_TRIM:
            return f" dbms_lob.trim(loc_{letter}, {part.length});"
        case Operation.LOB_ERASE:
            return f" e_len :=  {part.length}; \n  dbms_lob.erase(loc_{letter}, e_len, {part.offset});"
        case Operation.BEGIN_32K:
            update = f'update {target} set "{part.column}" = :VAR where {where}'
            return f"DECLARE \n VAR VARCHAR2(32767); \n Stmt VARCHAR2(4000); \nBEGIN\n Stmt := {_literal(update)};"
        case Operation.WRITE_32K:
            assert isinstance(part.data, str)
            # The value begins at the thirteenth character, and another statement follows it.
            return f" VAR :=    {_literal(part.data)}; EXECUTE IMMEDIATE Stmt USING VAR;"
        case Operation.XML_BEGIN:
            if part.is_binary:
                return f'XML DOC BEGIN:  select "{part.column}" from {target} where {where}'
            return f'update {target} a set a."{part.column}" = XMLType(:1) where {where}'
        case Operation.XML_WRITE:
            return _xml(part)
    return None


def _xml(part: Part) -> str:
    if part.data is None:
        return "XML_REDO := NULL"
    assert isinstance(part.data, str)
    if not part.is_binary:
        return part.data
    raw = part.data.encode()
    if len(raw) < SHORT:
        return f"XML_REDO := '{part.data}'\n amount: {len(raw)}"
    # Oracle leaves out the last quote.
    return f"XML_REDO := HEXTORAW('{raw.hex().upper()})\n amount: {len(raw)}"


SHORT = 100
"""Binary XML with fewer bytes is shown as text."""


def _literal(data: Content) -> str:
    if isinstance(data, bytes):
        return f"HEXTORAW('{data.hex().upper()}')"
    return "'" + data.replace("'", "''") + "'"
