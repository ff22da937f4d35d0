"""Writes statements about tables in varying spelling, and keeps what the tables are after them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from tests.support.oracle.ddl_model import ModelColumn, ModelTable
from tests.support.oracle.ddl_types import any_type

OWNER = "APP"
NAMES = (
    "ID",
    "NAME",
    "TYPE",
    "KEY",
    "VALUE",
    "STATUS",
    "A$1",
    "B#",
    "C_D",
    "lower",
    "Mixed Case",
    "NUMBER",
    "É",
    "LAST",
)
TABLES = ("T", "ORDERS", "LINE_ITEMS", "X$Y", "small", "Two Words", "TABLE")
_PLAIN = re.compile(r"[A-Z][A-Z0-9_$#]*")
_QUOTED = re.compile(r"(q'\[.*?\]'|'(?:[^']|'')*'|\"[^\"]*\"| )")
_QUOTES = ("'", '"', "q")
_RESERVED = {"NUMBER", "TABLE"}
_DEFAULTS = (
    "0",
    "-1",
    "'x'",
    "'it''s'",
    "SYSDATE",
    "NULL",
    "(1 + 2)",
    "q'[a'b]'",
    "TO_DATE('2020-01-01', 'YYYY-MM-DD')",
    "USER",
    "1.5e3",
)
_STATES = ("", "", " ENABLE", " ENABLE VALIDATE", " NOT DEFERRABLE INITIALLY IMMEDIATE", " RELY")
_TAILS = (
    "",
    "",
    "TABLESPACE users",
    "SEGMENT CREATION IMMEDIATE PCTFREE 10 PCTUSED 40 INITRANS 1 MAXTRANS 255 NOCOMPRESS LOGGING",
    "PCTFREE 5 STORAGE (INITIAL 65536 NEXT 1048576 MINEXTENTS 1) NOLOGGING",
    "NOPARALLEL CACHE",
    "ENABLE ROW MOVEMENT",
)
_STORAGE = (
    "SHRINK SPACE",
    "MOVE TABLESPACE users",
    "ENABLE ROW MOVEMENT",
    "NOLOGGING",
    "PCTFREE 20",
    "ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS",
    "ADD PARTITION p9 VALUES LESS THAN (10)",
    "TRUNCATE PARTITION p1 DROP STORAGE",
    "DISABLE ALL TRIGGERS",
    "ENABLE CONSTRAINT some_check",
    "READ ONLY",
    "ADD CONSTRAINT some_check CHECK (1 > 0 AND 'a' <> ')')",
)
_OTHERS = (
    "CREATE UNIQUE INDEX i ON t (a, b) TABLESPACE users",
    "CREATE OR REPLACE VIEW v AS SELECT * FROM t",
    "CREATE SEQUENCE s START WITH 1",
    "GRANT SELECT ON t TO PUBLIC",
    "DROP INDEX i",
    "CREATE SYNONYM y FOR t",
    "ALTER INDEX i REBUILD",
    "DROP VIEW v",
    "ALTER SESSION SET CURRENT_SCHEMA = APP",
)


class DdlWriter:
    """Writes statements.

    Args:
        chance: of the choices.
        common: whether to write only what Debezium understands in the same way.

    Attributes:
        tables: the tables by name, as they are after the statements.
    """

    def __init__(self, chance: random.Random, common: bool = False) -> None:
        self._chance = chance
        self._common = common
        self.tables: dict[str, ModelTable] = {}

    def statement(self) -> str:
        """Return the next statement."""
        return self._spelled(self._next())

    def _next(self) -> str:
        chance = self._chance
        if not self.tables or chance.random() < 0.15:
            return self._create()
        name = chance.choice(sorted(self.tables))
        makers = [self._add, self._add, self._modify, self._modify, self._drop_columns, self._rename_column]
        makers += [self._key, self._rename, self._several, self._storage, self._comment, self._other]
        if chance.random() < 0.1:
            makers = [self._drop, self._truncate]
        return chance.choice(makers)(name)

    def _create(self) -> str:
        free = [one for one in TABLES if one not in self.tables]
        if not free:
            return self._drop(self._chance.choice(sorted(self.tables)))
        name = self._chance.choice(free)
        table = ModelTable([])
        names = self._chance.sample(NAMES, self._chance.randint(1, 6))
        elements = [self._definition(table, one) for one in names]
        if self._chance.random() < 0.6:
            elements = self._with_key(table, elements)
        if self._chance.random() < 0.3:
            elements.append(self._unimportant(table))
        if self._chance.random() < 0.2:
            elements.append(f'"COMPUTED" NUMBER GENERATED ALWAYS AS (LENGTH({self._name(names[0])}) * 2) VIRTUAL')
            table.virtual.append("COMPUTED")
        self.tables[name] = table
        kind = self._chance.choice(["", "", "", "GLOBAL TEMPORARY "])
        tail = "ON COMMIT PRESERVE ROWS" if kind else self._chance.choice(_TAILS)
        return f"CREATE {kind}TABLE {self._table(name)} ({', '.join(elements)}) {tail}"

    def _with_key(self, table: ModelTable, elements: list[str]) -> list[str]:
        keys = self._chance.sample([one.name for one in table.columns], self._chance.randint(1, len(table.columns)))
        table.set_key(keys)
        if len(keys) == 1 and self._chance.random() < 0.5:
            at = [one.name for one in table.columns].index(keys[0])
            return [*elements[:at], f"{elements[at]} PRIMARY KEY", *elements[at + 1 :]]
        named = self._chance.choice(["", 'CONSTRAINT "PK_T" '])
        index = self._chance.choice(["", " USING INDEX", " USING INDEX PCTFREE 10 TABLESPACE users ENABLE"])
        return [*elements, f"{named}PRIMARY KEY ({self._names(keys)}){index}"]

    def _unimportant(self, table: ModelTable) -> str:
        some = self._name(table.columns[0].name)
        return self._chance.choice(
            [
                f"CHECK ({some} IS NOT NULL)",
                f"CONSTRAINT u1 UNIQUE ({some})",
                f"FOREIGN KEY ({some}) REFERENCES other (id) ON DELETE CASCADE",
                "SUPPLEMENTAL LOG DATA (ALL) COLUMNS",
                f"SUPPLEMENTAL LOG GROUP g ({some}) ALWAYS",
            ]
        )

    def _definition(self, table: ModelTable, name: str) -> str:
        """Add a column and return its definition."""
        spelled = any_type(self._chance, self._common)
        column = ModelColumn(name, spelled.type, spelled.length, spelled.scale)
        table.columns.append(column)
        return f"{self._name(name)} {spelled.text}{self._attributes(column)}"

    def _attributes(self, column: ModelColumn) -> str:
        chance, text = self._chance, ""
        if chance.random() < 0.3:
            column.default = chance.choice(_DEFAULTS)
            text += f" DEFAULT {column.default}"
        if chance.random() < 0.1 and not self._common:
            column.default = "7"
            column.optional = False
            return " DEFAULT ON NULL 7"
        if chance.random() < 0.3:
            column.optional = False
            named = chance.choice(["", " CONSTRAINT nn"])
            text += f"{named} NOT NULL{chance.choice(_STATES)}"
        elif chance.random() < 0.2:
            column.optional = True
            text += " NULL"
        elif chance.random() < 0.1 and not self._common:
            text += chance.choice([" NOT NULL DISABLE", " INVISIBLE", " UNIQUE", " CHECK (1 = 1) DISABLE"])
        return text

    def _add(self, name: str) -> str:
        return f"ALTER TABLE {self._table(name)} {self._add_clause(name)}"

    def _add_clause(self, name: str) -> str:
        table = self.tables[name]
        free = [one for one in NAMES if one not in {column.name for column in table.columns}]
        chosen = self._chance.sample(free, min(len(free), self._chance.randint(1, 3)))
        if not chosen:
            return "NOLOGGING"
        definitions = [self._definition(table, one) for one in chosen]
        if len(definitions) == 1 and self._chance.random() < 0.5:
            return f"ADD {definitions[0]}"
        if not table.key and self._chance.random() < 0.2:
            table.set_key(chosen)
            definitions.append(f"CONSTRAINT added_key PRIMARY KEY ({self._names(chosen)})")
        return f"ADD ({', '.join(definitions)})"

    def _modify(self, name: str) -> str:
        return f"ALTER TABLE {self._table(name)} {self._modify_clause(name)}"

    def _modify_clause(self, name: str) -> str:
        table = self.tables[name]
        chosen = self._chance.sample(table.columns, min(len(table.columns), self._chance.randint(1, 2)))
        parts = [self._modified(table, one) for one in chosen]
        if len(parts) == 1 and self._chance.random() < 0.5:
            return f"MODIFY {parts[0]}"
        return f"MODIFY ({', '.join(parts)})"

    def _modified(self, table: ModelTable, column: ModelColumn) -> str:
        text = ""
        if self._chance.random() < 0.6:
            spelled = any_type(self._chance, self._common)
            column.type, column.length, column.scale = spelled.type, spelled.length, spelled.scale
            text += f" {spelled.text}"
        if self._chance.random() < 0.4:
            column.default = self._chance.choice(_DEFAULTS)
            text += f" DEFAULT {column.default}"
        if column.name not in table.key and (not text or self._chance.random() < 0.4):
            column.optional = not column.optional
            text += " NULL" if column.optional else " NOT NULL"
        if not text:
            column.default = "1"
            text = " DEFAULT 1"
        return self._name(column.name) + text

    def _drop_columns(self, name: str) -> str:
        return f"ALTER TABLE {self._table(name)} {self._drop_clause(name)}"

    def _drop_clause(self, name: str) -> str:
        table = self.tables[name]
        left = [one.name for one in table.columns]
        if self._common and len(table.key) > 1:
            left = [one for one in left if one not in table.key]
        chosen = self._chance.sample(left, min(max(len(table.columns) - 1, 0), len(left), self._chance.randint(1, 2)))
        if not chosen:
            return "NOLOGGING"
        table.drop(chosen)
        verb = self._chance.choice(["DROP", "SET UNUSED"])
        tail = self._chance.choice(["", "", " CASCADE CONSTRAINTS"])
        if len(chosen) == 1 and self._chance.random() < 0.5:
            return f"{verb} COLUMN {self._names(chosen)}{tail}"
        return f"{verb} ({self._names(chosen)}){tail}"

    def _rename_column(self, name: str) -> str:
        table = self.tables[name]
        free = [one for one in NAMES if one not in {column.name for column in table.columns}]
        if not free:
            return self._storage(name)
        old, new = self._chance.choice(table.columns).name, self._chance.choice(free)
        table.rename(old, new)
        return f"ALTER TABLE {self._table(name)} RENAME COLUMN {self._name(old)} TO {self._name(new)}"

    def _key(self, name: str) -> str:
        table = self.tables[name]
        if table.key:
            table.key = []
            tail = self._chance.choice(["", " CASCADE", " CASCADE DROP INDEX", "" if self._common else " KEEP INDEX"])
            return f"ALTER TABLE {self._table(name)} DROP PRIMARY KEY{tail}"
        keys = self._chance.sample([one.name for one in table.columns], self._chance.randint(1, len(table.columns)))
        table.set_key(keys)
        named = self._chance.choice(["", "CONSTRAINT new_key "])
        state = self._chance.choice(_STATES)
        return f"ALTER TABLE {self._table(name)} ADD {named}PRIMARY KEY ({self._names(keys)}){state}"

    def _several(self, name: str) -> str:
        clauses = [self._add_clause(name), self._modify_clause(name)]
        if self._chance.random() < 0.3:
            clauses.append(self._drop_clause(name))
        return f"ALTER TABLE {self._table(name)} {' '.join(one for one in clauses if one != 'NOLOGGING')}"

    def _storage(self, name: str) -> str:
        clauses = _STORAGE if self._common else (*_STORAGE, "DROP UNUSED COLUMNS")
        return f"ALTER TABLE {self._table(name)} {self._chance.choice(clauses)}"

    def _rename(self, name: str) -> str:
        free = [one for one in TABLES if one not in self.tables]
        if not free:
            return self._storage(name)
        new = self._chance.choice(free)
        self.tables[new] = self.tables.pop(name)
        if not self._common and self._chance.random() < 0.5:
            return f"RENAME {self._name(name)} TO {self._name(new)}"
        return f"ALTER TABLE {self._table(name)} RENAME TO {self._name(new)}"

    def _comment(self, name: str) -> str:
        text = self._chance.choice(["a comment", "b"] if self._common else ["a comment", "it's", "; --", ""])
        quoted = "'" + text.replace("'", "''") + "'"
        table = self.tables[name]
        if self._chance.random() < 0.5:
            table.comment = text or None
            return f"COMMENT ON TABLE {self._table(name)} IS {quoted}"
        column = self._chance.choice(table.columns)
        column.comment = text or None
        return f"COMMENT ON COLUMN {self._table(name)}.{self._name(column.name)} IS {quoted}"

    def _other(self, name: str) -> str:
        del name
        return self._chance.choice(_OTHERS)

    def _drop(self, name: str) -> str:
        del self.tables[name]
        tail = self._chance.choice(["", " PURGE", " CASCADE CONSTRAINTS", ' AS "BIN$aBcD1234+/x==$0" '])
        return f"DROP TABLE {self._table(name)}{tail}"

    def _truncate(self, name: str) -> str:
        return f"TRUNCATE TABLE {self._table(name)}{self._chance.choice(['', ' DROP STORAGE', ' REUSE STORAGE'])}"

    def _table(self, name: str) -> str:
        owner = self._chance.choice(["", f"{OWNER}.", f'"{OWNER}".'])
        return owner + self._name(name)

    def _names(self, names: Sequence[str]) -> str:
        return ", ".join(map(self._name, names))

    def _name(self, name: str) -> str:
        if _PLAIN.fullmatch(name) is None or name in _RESERVED or self._chance.random() < 0.4:
            return f'"{name}"'
        return self._chance.choice([name, name.lower(), name.capitalize()])

    def _spelled(self, text: str) -> str:
        """Return a statement with other letters and spaces outside of quotes."""
        letters: Callable[[str], str] = self._chance.choice([str.upper, str.lower, str.title])
        spaces = self._chance.choice([(" ",), (" ", "  ", "\n", "\t"), (" ", " /* a 'note' */ ", " -- a note\n")])

        def spelled(piece: str) -> str:
            if piece == " ":
                return self._chance.choice(spaces)
            return piece if piece[:1] in _QUOTES and len(piece) > 1 else letters(piece)

        return "".join(map(spelled, _QUOTED.split(text))) + self._chance.choice(["", ";", " ;"])
