"""Random statements about tables, most of which a server accepts, given the tables that it has."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from floodmark.connectors.mysql.structures.table import Column, Table

NAMES = ("a", "b", "c", "d", "e", "a_2", "B_2", "functional_index", "x y", "key")
TABLES = ("t", "u", "v", "w")
CHARSETS = {
    "latin1": ("latin1_swedish_ci", "latin1_bin", "latin1_german1_ci"),
    "utf8mb4": ("utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_unicode_ci"),
    "latin2": ("latin2_general_ci", "latin2_croatian_ci"),
    "utf8mb3": ("utf8mb3_general_ci", "utf8mb3_bin"),
    "binary": ("binary",),
}
NUMBERS = ("0", "1", "-3", "'7'", "2.5", "'2.5'", "1e1", "+4", "007", "TRUE", "0x10", "(5)", "(1 + 1)", "-0")
TEXTS = (
    "'x'",
    "''",
    "'a''b'",
    '"q"',
    "5",
    "1.50",
    "1e2",
    "'a' 'b'",
    "N'n'",
    "_latin1'l'",
    "0x4142",
    "(concat('p', 'q'))",
)
DATES = ("'2020-01-02'", "'2020/1/2'", "20200102", "'20200102'", "'20-1-2'", "'2020-01-02 10:11:12'", "'2020.01.02'")
WITH_OFFSETS = ("'2020-01-02 03:04:05+05:00'", "'2020-1-2 23:04:05.678-05:30'", "'2020-12-31 23:30:00-00:30'")
MOMENTS = (
    *(
        "'2020-01-02 03:04:05'",
        "'2020-1-2 3:4'",
        "20200102030405",
        "'2020-01-02 03:04:05.678'",
        "'2020-01-02T03:04:05'",
    ),
    *("CURRENT_TIMESTAMP", "NOW()", "LOCALTIME", "20200102030405.6"),
    *WITH_OFFSETS,
)
HOURS = ("'10:11:12'", "'10:11:12.5'", "'1 2:3:4'", "101112", "'-1:2:3'", "'5'", "'23:59:59.96'", *WITH_OFFSETS)
LABELS = ("'x'", "'Y'", "'y'", "'z '")
SIZED: dict[str, tuple[str, ...]] = {
    "TINYINT": NUMBERS,
    "INT": NUMBERS,
    "INTEGER": NUMBERS,
    "INT(5)": NUMBERS,
    "INT(3) ZEROFILL": ("0", "1", "'7'", "2.5"),
    "BIGINT UNSIGNED": ("0", "1", "'7'", "2.5", "0x10"),
    "SMALLINT SIGNED": NUMBERS,
    "BOOL": ("TRUE", "FALSE", "1"),
    "DECIMAL(8,3)": NUMBERS,
    "DECIMAL": NUMBERS,
    "NUMERIC(6.5)": NUMBERS,
    "DECIMAL(7,2) ZEROFILL": ("0", "1.555", "'7'"),
    "FLOAT": ("0", "1.5", "-1e3", "'2.5'"),
    "FLOAT(30)": ("0", "1.5", "-1e3", "'2.5'"),
    "DOUBLE": ("0", "1.5", "-1e3", "'2.5'", "1e20", "1e-7"),
    "DOUBLE(10,2)": ("0", "1.5", "'2.5'"),
    "BIT": ("0", "b'1'", "TRUE"),
    "BIT(9)": ("5", "b'101'", "0x1f", "2.5"),
    "YEAR": ("2020", "'99'", "0", "'0'", "70"),
    "DATE": (*DATES, *WITH_OFFSETS),
    "DATETIME": MOMENTS,
    "TIMESTAMP": MOMENTS,
    "TIME": HOURS,
    "TIME(2)": HOURS,
    "CHAR(5)": TEXTS,
    "CHAR": ("'x'", "''", "5"),
    "VARCHAR(20)": (*TEXTS, "(concat('p', 'q'))"),
    "VARCHAR(9.)": TEXTS,
    "NATIONAL VARCHAR(7)": ("'x'", "5"),
    "BINARY(4)": ("'x'", "0x4142", "5"),
    "VARBINARY(9)": TEXTS,
    "TEXT": ("''", "('e')"),
    "TEXT(70000)": (),
    "TINYTEXT": (),
    "LONG VARCHAR": (),
    "BLOB": ("''",),
    "MEDIUMBLOB": (),
    "BLOB(300)": (),
    "ENUM('x','Y','z')": LABELS,
    "SET('x','Y','z')": ("'x,z'", "''", "'y'"),
    "JSON": (),
}
"""Types by what their defaults may be."""
FRACTIONAL = {"DATETIME(3)": "3", "TIMESTAMP(1)": "1", "DATETIME(6)": "6"}
TEXTUAL = ("CHAR", "VARCHAR", "TEXT", "TINYTEXT", "LONG", "ENUM", "SET")
WHOLE = ("TINYINT", "INT", "INTEGER", "BIGINT", "SMALLINT")
MODES = ("DEFAULT", "DEFAULT", "''", "'ANSI_QUOTES'")
ANSI = "'ANSI_QUOTES'"


class RandomDdl:
    """Makes statements.

    Args:
        mariadb: whether they are for MariaDB.
    """

    def __init__(self, chance: random.Random, mariadb: bool) -> None:
        self._chance, self._mariadb = chance, mariadb
        self._ansi = False

    def statement(self, tables: Sequence[Table]) -> str:
        """Return the next statement.

        Args:
            tables: those that there are, all in the default database.
        """
        if not tables or (len(tables) < len(TABLES) and self._one_in(6)):
            return self._create(tables)
        table = self._chance.choice(tables)
        makers: list[Callable[[Table, Sequence[Table]], str]] = [self._alter] * 14
        makers += [self._index] * 3 + [self._drop_index] * 2 + [self._rename, self._drop, self._like, self._session]
        return self._chance.choice(makers)(table, tables)

    def _one_in(self, number: int) -> bool:
        return self._chance.randrange(number) == 0

    def _name(self, name: str) -> str:
        if name.replace("_", "").isalnum() and name != "key" and self._one_in(2):
            return name.upper() if self._one_in(6) else name
        quote = '"' if self._ansi and self._one_in(2) else "`"
        return quote + name.replace(quote, quote * 2) + quote

    def _some_column(self, table: Table | None) -> str:
        if table is None or self._one_in(12):
            return self._name(self._chance.choice(NAMES))
        return self._name(self._chance.choice(table.columns).name)

    def _some_index(self, table: Table) -> str:
        if not table.indexes or self._one_in(12):
            return self._name(self._chance.choice(NAMES))
        index = self._chance.choice(table.indexes).name
        return f"`{index}`" if index == "PRIMARY" else self._name(index)

    def _create(self, tables: Sequence[Table]) -> str:
        taken = {table.name for table in tables}
        name = self._chance.choice([name for name in TABLES if name not in taken] or TABLES)
        names = self._chance.sample(NAMES, self._chance.randint(1, 6))
        elements = [f"{self._name(one)} {self._definition()}" for one in names]
        count = self._chance.choice((0, 0, 1, 1, 2, 3))
        elements += [self._key([self._name(one) for one in names]) for _ in range(count)]
        replacing = "OR REPLACE " if self._mariadb and self._one_in(8) else ""
        only_new = "IF NOT EXISTS " if not replacing and self._one_in(5) else ""
        options = "".join(f" {self._option()}" for _ in range(self._chance.choice((0, 0, 1, 2))))
        return f"CREATE {replacing}TABLE {only_new}{self._name(name)} ({', '.join(elements)}){options}"

    def _definition(self) -> str:
        type_ = self._chance.choice(tuple(SIZED) if not self._one_in(8) else tuple(FRACTIONAL))
        parts = []
        if type_.startswith(TEXTUAL) and self._one_in(3):
            parts += self._charset()
        if self._one_in(9) and not type_.startswith(("JSON", "BIT")):
            parts += [self._chance.choice(("AS (NULL)", "GENERATED ALWAYS AS (NULL) VIRTUAL", "AS (NULL) STORED"))]
            return " ".join([type_, *parts])
        attributes = []
        if self._one_in(2):
            attributes.append(self._chance.choice(("NOT NULL", "NOT NULL", "NULL")))
        attributes += self._default(type_)
        if type_.startswith(WHOLE) and self._one_in(14):
            attributes = ["AUTO_INCREMENT", self._chance.choice(("UNIQUE", "PRIMARY KEY", "KEY", "UNIQUE KEY"))]
        if self._one_in(8):
            attributes.append(self._chance.choice(("UNIQUE", "PRIMARY KEY", "UNIQUE KEY", "KEY", "UNIQUE PRIMARY KEY")))
        if self._one_in(10):
            attributes.append(self._chance.choice(("COMMENT 'it''s'", "COMMENT ''", "INVISIBLE", "CHECK (TRUE)")))
        if not type_.startswith(WHOLE) or "AUTO_INCREMENT" not in attributes:
            self._chance.shuffle(attributes)
        return " ".join([type_, *parts, *attributes])

    def _default(self, type_: str) -> list[str]:
        if not self._one_in(3):
            return []
        if type_ in FRACTIONAL or (type_ in ("DATETIME", "TIMESTAMP") and self._one_in(2)):
            digits = f"({FRACTIONAL[type_]})" if type_ in FRACTIONAL else ""
            default = self._chance.choice(("", f"DEFAULT CURRENT_TIMESTAMP{digits}", "DEFAULT NULL"))
            return [part for part in (default, self._chance.choice(("", f"ON UPDATE NOW{digits or '()'}"))) if part]
        return [f"DEFAULT {self._literal(type_)}"]

    def _literal(self, type_: str) -> str:
        literal = self._chance.choice((*SIZED.get(type_, ()), "NULL"))
        return literal if not self._ansi else literal.replace('"', "'")

    def _charset(self) -> list[str]:
        name, collations = self._chance.choice(tuple(CHARSETS.items()))
        collation = self._chance.choice((*collations, "DEFAULT") if self._mariadb else collations)
        charset = f"{self._chance.choice(('CHARACTER SET', 'CHARSET'))} {name}"
        return self._chance.choice(([charset], [charset, f"COLLATE {collation}"], [f"COLLATE {collation}"], ["BINARY"]))

    def _option(self) -> str:
        name, collations = self._chance.choice(tuple(CHARSETS.items()))
        collation = self._chance.choice(collations)
        choices = [
            f"CHARSET {name}",
            f"DEFAULT CHARACTER SET = {name} COLLATE {collation}",
            f"COLLATE = {collation}",
            f"COLLATE {collation} CHARSET {name}",
            "COMMENT 'c'",
            "ENGINE = InnoDB",
            "AUTO_INCREMENT 5",
        ]
        if self._mariadb:
            choices += ["CHARSET = DEFAULT", "COLLATE DEFAULT", f"CHARSET {name} COLLATE DEFAULT"]
        return self._chance.choice(choices)

    def _parts(self, columns: Sequence[str]) -> str:
        chosen = self._chance.sample(list(columns), min(len(columns), self._chance.choice((1, 1, 1, 2, 3))))
        lengths = ("(1)", "(3)", "(8)", "(300)") if self._one_in(4) else ("",)
        parts = [
            part + self._chance.choice(lengths) + self._chance.choice(("", "", "", " DESC", " ASC")) for part in chosen
        ]
        if not self._mariadb and self._one_in(6):
            parts[self._chance.randrange(len(parts))] = f"(({chosen[0]}) IS NULL)"
        return f"({', '.join(parts)})"

    def _key(self, columns: Sequence[str], conditional: bool = False) -> str:
        only_new = " IF NOT EXISTS" if conditional and self._mariadb and self._one_in(3) else ""
        if self._one_in(5):
            return f"PRIMARY KEY{only_new} {self._parts(columns)}"
        name = f" {self._name(self._chance.choice(NAMES))}" if self._one_in(2) else ""
        kind = self._chance.choice(("KEY", "INDEX", "UNIQUE", "UNIQUE KEY", "UNIQUE INDEX"))
        symbol = f"CONSTRAINT {self._name(self._chance.choice(NAMES))} " if "UNIQUE" in kind and self._one_in(6) else ""
        return f"{symbol}{kind}{only_new}{name} {self._parts(columns)}"

    def _alter(self, table: Table, _tables: Sequence[Table]) -> str:
        count = self._chance.choice((1, 1, 1, 2, 2, 3, 4))
        clauses = [self._clause(table) for _ in range(count)]
        return f"ALTER TABLE {self._name(table.name)} {', '.join(clauses)}"

    def _clause(self, table: Table) -> str:
        makers = (
            [self._add] * 5 + [self._modify] * 4 + [self._change] * 3 + [self._drop_column] * 2 + [self._add_key] * 4
        )
        makers += [self._drop_key] * 2 + [self._set_default] * 2 + [self._other_clause] * 3
        return self._chance.choice(makers)(table)

    def _place(self, table: Table) -> str:
        return self._chance.choice(("", "", "", " FIRST", f" AFTER {self._some_column(table)}"))

    def _add(self, table: Table) -> str:
        only_new = " IF NOT EXISTS" if self._mariadb and self._one_in(2) else ""
        names = [one for one in NAMES if one not in {column.name for column in table.columns}] or list(NAMES)
        word = self._chance.choice((" COLUMN", "")) if not only_new else " COLUMN"
        if only_new and self._one_in(2):
            names = list(NAMES)
        if not self._one_in(5):
            return (
                f"ADD{word}{only_new} {self._name(self._chance.choice(names))} {self._definition()}{self._place(table)}"
            )
        chosen = self._chance.sample(names, min(len(names), 2))
        elements = [f"{self._name(one)} {self._definition()}" for one in chosen]
        if self._one_in(3):
            elements.append(self._key([self._name(one) for one in chosen]))
        return f"ADD{word}{only_new} ({', '.join(elements)})"

    def _modify(self, table: Table) -> str:
        present = " COLUMN IF EXISTS" if self._mariadb and self._one_in(4) else ""
        return f"MODIFY{present} {self._some_column(table)} {self._definition()}{self._place(table)}"

    def _change(self, table: Table) -> str:
        # MariaDB takes changes of columns that aren't there for those of columns that the statement adds.
        old = self._name(self._chance.choice(table.columns).name) if self._mariadb else self._some_column(table)
        new = self._name(self._chance.choice(NAMES))
        if self._one_in(2):
            return f"RENAME COLUMN {old} TO {new}"
        return f"CHANGE {old} {new} {self._definition()}{self._place(table)}"

    def _drop_column(self, table: Table) -> str:
        present = "COLUMN IF EXISTS " if self._mariadb and self._one_in(4) else ""
        return f"DROP {present}{self._some_column(table)}"

    def _add_key(self, table: Table) -> str:
        return f"ADD {self._key([self._name(column.name) for column in table.columns], conditional=True)}"

    def _drop_key(self, table: Table) -> str:
        if self._one_in(4):
            return "DROP PRIMARY KEY"
        if self._one_in(3):
            return f"RENAME INDEX {self._some_index(table)} TO {self._name(self._chance.choice(NAMES))}"
        word = self._chance.choice(("KEY", "INDEX", "CONSTRAINT"))
        present = " IF EXISTS" if self._mariadb and self._one_in(4) else ""
        return f"DROP {word}{present} {self._some_index(table)}"

    def _set_default(self, table: Table) -> str:
        column = self._chance.choice(table.columns)
        clause = f"ALTER {self._name(column.name)}"
        return (
            f"{clause} DROP DEFAULT" if self._one_in(3) else f"{clause} SET DEFAULT {self._literal(_type_of(column))}"
        )

    def _other_clause(self, table: Table) -> str:
        name, collations = self._chance.choice(tuple(CHARSETS.items()))
        collation = self._chance.choice(collations)
        return self._chance.choice(
            (
                self._option(),
                f"CONVERT TO CHARACTER SET {name}",
                f"CONVERT TO CHARSET {name} COLLATE {collation}",
                "CONVERT TO CHARACTER SET DEFAULT",
                "FORCE",
                f"RENAME TO {self._name(self._chance.choice(TABLES))}",
                f"ORDER BY {self._some_column(table)}",
            )
        )

    def _index(self, table: Table, _tables: Sequence[Table]) -> str:
        replacing = "OR REPLACE " if self._mariadb and self._one_in(5) else ""
        only_new = "IF NOT EXISTS " if self._mariadb and not replacing and self._one_in(5) else ""
        unique = self._chance.choice(("UNIQUE ", "UNIQUE ", ""))
        parts = self._parts([self._name(column.name) for column in table.columns])
        name = self._name(self._chance.choice(NAMES))
        return f"CREATE {replacing}{unique}INDEX {only_new}{name} ON {self._name(table.name)} {parts}"

    def _drop_index(self, table: Table, _tables: Sequence[Table]) -> str:
        present = "IF EXISTS " if self._mariadb and self._one_in(4) else ""
        return f"DROP INDEX {present}{self._some_index(table)} ON {self._name(table.name)}"

    def _rename(self, table: Table, tables: Sequence[Table]) -> str:
        other, new = self._chance.choice(tables).name, self._chance.choice(TABLES)
        if self._one_in(2):
            return f"RENAME TABLE {self._name(table.name)} TO {self._name(new)}"
        if other == table.name:
            return f"RENAME TABLE {self._name(other)} TO swap, swap TO {self._name(new)}"
        one, two = self._name(table.name), self._name(other)
        return f"RENAME TABLE {one} TO swap, {two} TO {one}, swap TO {two}"

    def _drop(self, table: Table, _tables: Sequence[Table]) -> str:
        present = "IF EXISTS " if self._one_in(2) else ""
        more = f", {self._name(self._chance.choice(TABLES))}" if present and self._one_in(3) else ""
        return f"DROP TABLE {present}{self._name(table.name)}{more}"

    def _like(self, table: Table, _tables: Sequence[Table]) -> str:
        return f"CREATE TABLE {self._name(self._chance.choice(TABLES))} LIKE {self._name(table.name)}"

    def _session(self, _table: Table, _tables: Sequence[Table]) -> str:
        mode = self._chance.choice(MODES)
        self._ansi = mode == ANSI
        return f"SET SESSION sql_mode = {mode}"


def _type_of(column: Column) -> str:
    """Return a type whose defaults may be those of a column."""
    return next((type_ for type_ in SIZED if type_.lower().startswith(column.type)), "INT")
