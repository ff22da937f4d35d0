"""Generated conditions of signals: those that users write, and those that attack."""

from __future__ import annotations

import random

from floodmark.connectors.predicates.dialect import Dialect
from floodmark.connectors.predicates.parser import TableColumns

TEXTS = (
    "x",
    "it's",
    "a\\b",
    'say "no"',
    "100%",
    "_",
    "",
    "日本",
    "é",
    "--",
    "/*",
    ";",
    "x'; DROP TABLE t; --",
    "{1,2}",
)

HOSTILE = (
    "1=1) UNION SELECT password, 1 FROM secrets --",
    "id = 1; DROP TABLE canary; --",
    "id = 1; UPDATE canary SET n = 1",
    "true) TO STDOUT; DROP TABLE canary; COPY (SELECT 1",
    "id IN (SELECT n FROM secrets)",
    "EXISTS (SELECT 1 FROM secrets WHERE password LIKE 'a%')",
    "(SELECT pg_sleep(100)) IS NULL",
    "pg_sleep(100) IS NULL",
    "sleep(100) = 0",
    "evil(id)",
    "public.evil(id)",
    "nextval('canary_numbers') > 0",
    "pg_terminate_backend(pg_backend_pid())",
    "lo_import('/etc/passwd') > 0",
    "set_config('search_path', 'public', false) = 'x'",
    "id = 1 INTO OUTFILE '/tmp/floodmark'",
    "id = 1 FOR UPDATE",
    "@canary := 1",
    "get_lock('canary', 0) = 1",
    "load_file('/etc/passwd') = 'x'",
    "benchmark(100000000, md5('x')) = 0",
    "id /*! OR evil(id) */ = 1",
    "id = 1 /*!50000 UNION SELECT 1 */",
    "id = 1 # comment\n OR 1 = 1",
    "id = 1 -- comment\n OR 1 = 1",
    "id = 1 --1",
    "id = $$1$$; DROP TABLE canary; $$x$$",
    "status = E'\\'; DROP TABLE canary; --'",
    "status = U&'\\0027; DROP TABLE canary; --'",
    "status = '\\'; DROP TABLE canary; --'",
    "status = '\u00bf\\' OR evil(1) -- '",
    "status = '\u8a33\\' OR evil(1) -- '",
    "id OPERATOR(public.===) 1",
    "status COLLATE evil = 'x'",
    "id::evil_type = 'x'",
    "id = 1\0; DROP TABLE canary",
    '"id" = 1 OR `id` = 1',
    "id = 1 PROCEDURE ANALYSE()",
)

_PIECES = (
    *(
        "'",
        '"',
        "`",
        "\\",
        "(",
        ")",
        ";",
        "--",
        "-- ",
        "#",
        "/*",
        "*/",
        "/*!",
        "$$",
        "$a$",
        "\0",
        "\n",
        " ",
        "@",
        ":=",
        "::",
    ),
    *(
        "SELECT",
        "UNION",
        "FROM secrets",
        "DROP TABLE canary",
        "evil(",
        "pg_sleep(",
        "OR",
        "AND",
        "NOT",
        "IN",
        "E'",
        "U&'",
        "X'",
    ),
    *(
        "0x",
        "1e",
        ".",
        ",",
        "||",
        "->",
        "~",
        "!",
        "&&",
        "||",
        "é",
        "\u00bf",
        "\u8a33",
        "id",
        "'x'",
        "1",
        "=",
        "<",
        "INTO",
        "FOR UPDATE",
    ),
)

WITHOUT_DISTINCT = ("Oracle",)
"""The dialects in which ``IS DISTINCT FROM`` can't be said."""


def generated_condition(random_: random.Random, dialect: Dialect, table: TableColumns, depth: int = 3) -> str:
    """Return a condition that is allowed."""
    mysql = dialect.double_quoted_text
    if depth and random_.random() < 0.6:
        inner = [generated_condition(random_, dialect, table, depth - 1) for _ in range(random_.randint(1, 3))]
        kind = random_.randrange(4)
        if kind == 0:
            return f"({inner[0]})"
        if kind == 1:
            return f"NOT {inner[0]}"
        words = (" and ", " OR ", *((" XOR ",) if mysql else ()))
        chosen: str = random_.choice(words)
        return chosen.join(f"({one})" if random_.random() < 0.5 else one for one in inner)
    left, right = (_value(random_, dialect, table) for _ in "12")
    kind = random_.randrange(7 if dialect.name in WITHOUT_DISTINCT else 8)
    negated = random_.choice(["", "NOT "])
    if kind < 3:
        return f"{left} {random_.choice(sorted(dialect.comparisons))} {right}"
    if kind == 3:
        return f"{left} IS {negated}{random_.choice(['NULL', 'null'])}"
    if kind == 4:
        return (
            f"{left} {negated}IN ({', '.join(_value(random_, dialect, table) for _ in range(random_.randint(1, 4)))})"
        )
    if kind == 5:
        return f"{left} {negated}BETWEEN {right} AND {_value(random_, dialect, table)}"
    if kind == 6:
        return f"{left} {negated}LIKE {_text(random_, mysql)}"
    return f"{left} IS {negated}DISTINCT FROM {right}"


def _value(random_: random.Random, dialect: Dialect, table: TableColumns, depth: int = 1) -> str:
    mysql = dialect.double_quoted_text
    kind = random_.randrange(10 if depth else 6)
    if kind < 3:
        columns = [name for name in table.columns if name not in table.hidden]
        quote = "`" if mysql else '"'
        name = random_.choice(columns)
        return quote + name.replace(quote, quote * 2) + quote
    if kind == 3:
        return random_.choice(["1", "42", "1.5", ".5", "1e3", "-7", "+3"])
    if kind < 6:
        return _text(random_, mysql)
    inner = _value(random_, dialect, table, 0)
    if kind == 6:
        return f"{inner} {random_.choice(['+', '-', '*'])} {random_.choice(['1', '(2)', '- 3'])}"
    if kind == 7:
        function = random_.choice(["lower", "UPPER", "length", "coalesce"])
        return f"{function}({inner}{', 1' if function == 'coalesce' else ''})"
    if kind == 8 and dialect.types:
        return f"CAST({inner} AS {'CHAR' if mysql else 'text'})"
    return f"/* c */ {inner} -- c\n"


def _text(random_: random.Random, mysql: bool) -> str:
    text = random_.choice(TEXTS).replace("'", "''")
    return f"'{text}'".replace("\\", "\\\\") if mysql else f"'{text}'"


def hostile_condition(random_: random.Random, dialect: Dialect, table: TableColumns) -> str:
    """Return a condition that attacks, or one that was damaged."""
    text = generated_condition(random_, dialect, table, 2)
    kind = random_.randrange(5)
    if kind == 0:
        return random_.choice(HOSTILE)
    if kind == 1:
        return f"{text} {random_.choice(['AND', 'OR', ';', ')', '--', ''])} {random_.choice(HOSTILE)}"
    if kind == 2:
        return "".join(random_.choice(_PIECES) + random_.choice(["", " "]) for _ in range(random_.randint(1, 12)))
    for _ in range(random_.randint(1, 3)):
        at, end = sorted(random_.randrange(len(text) + 1) for _ in range(2))
        text = random_.choice((text[:at] + text[end:], text[:at] + random_.choice(_PIECES) + text[at:], text[:end]))
    return text
