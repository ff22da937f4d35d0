"""Parses conditions and the statements of blocking snapshots.

What is allowed is listed; all else is refused by its name. The server never sees the text, only the SQL that the
renderers write from the tree.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn

from floodmark.connectors.predicates.dialect import EXTRACTED, Dialect, words
from floodmark.connectors.predicates.tokens import Token, refuse, tokens
from floodmark.connectors.predicates.tree import (
    Between,
    Binary,
    Bytes,
    Call,
    Cast,
    Column,
    Constant,
    Distinct,
    Expression,
    Extract,
    In,
    Is,
    Like,
    Logical,
    Negative,
    Not,
    Number,
    Period,
    Query,
    Text,
    Typed,
)
from floodmark.errors import ConditionError

MOST_NESTED = 50
MOST_CHAINED = 50

_SUBQUERIES = words("SELECT WITH TABLE VALUES EXISTS ANY ALL SOME ARRAY ROW")
_RESERVED = _SUBQUERIES | words(
    "AND OR XOR NOT IN IS BETWEEN LIKE ILIKE RLIKE REGEXP SIMILAR NULL TRUE FALSE UNKNOWN DISTINCT FROM WHERE GROUP "
    "HAVING ORDER LIMIT OFFSET FETCH UNION INTERSECT EXCEPT INTO FOR LOCK ESCAPE CASE WHEN THEN ELSE END CAST COLLATE "
    "PROCEDURE JOIN ON USING WINDOW AS BINARY DIV MOD RETURNING OPERATOR OVER MATCH SOUNDS MEMBER"
)
_TRUTHS = frozenset(("NULL", "TRUE", "FALSE", "UNKNOWN"))


@dataclass(frozen=True)
class TableColumns:
    """The table that a condition is on.

    Attributes:
        names: the names that it may have, each with its schema or database.
        columns: the names of its columns.
        hidden: columns that events don't show as they are; conditions on them would reveal their values.
    """

    names: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    hidden: Collection[str] = ()


def parse_condition(text: str, table: TableColumns, dialect: Dialect) -> Expression:
    """Parse a condition.

    Raises:
        ConditionError: the text is not one condition, or has something that is not allowed.
    """
    reader = _Reader(text, table, dialect)
    found = reader.condition()
    reader.end()
    return found


def parse_query(text: str, table: TableColumns, dialect: Dialect) -> Query:
    """Parse a blocking snapshot's statement: ``SELECT * FROM <table> WHERE …``, or a condition alone.

    Raises:
        ConditionError: the text is not one such statement, or has something that is not allowed.
    """
    reader = _Reader(text, table, dialect)
    found = reader.query() if reader.is_word("SELECT") else Query(reader.condition())
    reader.end()
    return found


class _Reader:
    """Parses one condition by recursive descent."""

    def __init__(self, text: str, table: TableColumns, dialect: Dialect) -> None:
        self._table = table
        self._dialect = dialect
        self._tokens: Sequence[Token] = tokens(text, dialect)
        self._at = 0
        self._depth = 0
        self._alias = ""

    # Tokens.

    def _now(self, ahead: int = 0) -> Token:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def _next(self) -> Token:
        found = self._now()
        self._at += 1
        return found

    def is_word(self, *words: str) -> bool:
        """Return whether the next token is one of some words."""
        return self._now().word in words

    def _is_sign(self, *signs: str) -> bool:
        return self._now().kind == "sign" and self._now().text in signs

    def _take_word(self, *words: str) -> bool:
        taken = self.is_word(*words)
        self._at += taken
        return taken

    def _take_sign(self, sign: str) -> bool:
        taken = self._is_sign(sign)
        self._at += taken
        return taken

    def _expect(self, sign: str) -> None:
        if not self._take_sign(sign):
            self._unexpected(f"'{sign}'")

    def _expect_word(self, word: str) -> None:
        if not self._take_word(word):
            self._unexpected(word)

    def _unexpected(self, wanted: str) -> NoReturn:
        token = self._now()
        if token.word in _SUBQUERIES:
            refuse(f"a subquery or a list of rows ('{token.text}')", "it can only read the rows of its own table")
        if token.kind == "end":
            raise ConditionError(f"it ends where {wanted} must follow")
        raise ConditionError(f"it has '{token.text[:80]}' where {wanted} must follow")

    def end(self) -> None:
        """Check that nothing follows, except for a semicolon."""
        self._take_sign(";")
        token = self._now()
        if token.kind == "end":
            return
        if self._tokens[self._at - 1].text == ";":
            refuse("more than one statement (';')")
        if token.kind == "sign" and token.text == ")":
            refuse("a closing bracket without an opening one")
        if token.word in _RESERVED:
            refuse(f"'{token.text}'", "it is one condition on the rows of one table")
        self._unexpected("AND, OR or the end")

    # Statements.

    def query(self) -> Query:
        """Parse a SELECT of this table's rows."""
        self._expect_word("SELECT")
        listed = [] if self._take_sign("*") else self._skip_columns()
        self._expect_word("FROM")
        self._table_name()
        for name in listed:
            self._resolve(name)
        condition = self.condition() if self._take_word("WHERE") else None
        order: list[tuple[Column, bool]] = []
        if self._take_word("ORDER"):
            self._expect_word("BY")
            order.append(self._ordered())
            while self._take_sign(","):
                order.append(self._ordered())
        limit = self._limit() if self._take_word("LIMIT") else None
        return Query(condition, tuple(order), limit)

    def _skip_columns(self) -> list[list[Token]]:
        """Parse a list of columns, which has no effect: all columns are read."""
        listed = [self._name()]
        while self._take_sign(","):
            listed.append(self._name())
        return listed

    def _table_name(self) -> None:
        self._take_word("ONLY")
        parts = [self._folded(token) for token in self._name()]
        if not any(self._same(parts, list(name)[-len(parts) :]) for name in self._table.names):
            known = ".".join(self._table.names[0])
            refuse(f"the table '{'.'.join(parts)}'", f"it can only read its own table, {known}")
        if self._take_word("AS") or (self._now().kind in ("word", "name") and self._now().word not in _RESERVED):
            self._alias = self._folded(self._next())

    def _ordered(self) -> tuple[Column, bool]:
        column = self._resolve(self._name())
        descends = self.is_word("DESC")
        self._take_word("ASC", "DESC")
        return column, descends

    def _limit(self) -> int:
        token = self._next()
        if token.kind != "number" or not token.text.isdecimal() or len(token.text) > 18:
            raise ConditionError(f"it has '{token.text[:80]}' where the number of a LIMIT must follow")
        return int(token.text)

    # Conditions, from the loosest to the tightest.

    def condition(self) -> Expression:
        """Parse a condition."""
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise ConditionError(f"it is nested more than {MOST_NESTED} deep")
        found = self._joined("OR")
        self._depth -= 1
        return found

    def _joined(self, word: Literal["AND", "OR", "XOR"]) -> Expression:
        following: Literal["AND", "XOR"] = "XOR" if word == "OR" and self._dialect.xor else "AND"
        operands = [self._negated() if word == "AND" else self._joined(following)]
        while self._take_word(word):
            operands.append(self._negated() if word == "AND" else self._joined(following))
        return operands[0] if len(operands) == 1 else Logical(word, tuple(operands))

    def _negated(self) -> Expression:
        number = 0
        while self._take_word("NOT"):
            number += 1
        found = self._comparison()
        return Not(found) if number % 2 else found

    def _comparison(self) -> Expression:
        left = self._value(0)
        token = self._now()
        if token.kind == "sign" and token.text in self._dialect.comparisons:
            self._next()
            left = Binary("<>" if token.text == "!=" else token.text, left, self._value(0))
        elif self.is_word("NOT", "IN", "BETWEEN", "LIKE", "ILIKE"):
            left = self._listed(left)
        if self._take_word("IS"):
            left = self._is(left)
        token = self._now()
        if (token.kind == "sign" and token.text in self._dialect.comparisons) or token.word in (
            "IN",
            "BETWEEN",
            "LIKE",
            "IS",
        ):
            refuse(f"'{token.text}' after another comparison", "put brackets around one of them")
        return left

    def _listed(self, left: Expression) -> Expression:
        negated = self._take_word("NOT")
        if self._take_word("IN"):
            self._expect("(")
            if self._now().word in _SUBQUERIES:
                self._unexpected("a list of values")
            items = [self._value(0)]
            while self._take_sign(","):
                items.append(self._value(0))
            self._expect(")")
            return In(left, tuple(items), negated)
        if self._take_word("BETWEEN"):
            low = self._value(0)
            self._expect_word("AND")
            return Between(left, low, self._value(0), negated)
        ignore_case = self.is_word("ILIKE")
        if self._take_word("LIKE") or (self._dialect.ignore_case and self._take_word("ILIKE")):
            pattern = self._value(0)
            return Like(left, pattern, self._escape() if self._take_word("ESCAPE") else None, ignore_case, negated)
        return self._unexpected("IN, BETWEEN or LIKE")

    def _escape(self) -> str:
        token = self._next()
        if token.kind != "text" or len(token.text) != 1:
            raise ConditionError("it has an ESCAPE that isn't one character")
        return token.text

    def _is(self, left: Expression) -> Expression:
        negated = self._take_word("NOT")
        if self._take_word("DISTINCT"):
            self._expect_word("FROM")
            return Distinct(left, self._value(0), negated)
        word = self._now().word
        if word not in _TRUTHS:
            self._unexpected("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")
        self._next()
        return Is(left, word, negated)

    def _value(self, least: int) -> Expression:
        """Parse a value whose operators have at least this precedence."""
        left = self._signed()
        for _ in range(MOST_CHAINED):
            token = self._now()
            operator = token.text if token.kind == "sign" else token.word
            tight = self._dialect.operators.get(operator, -1)
            if tight < 0 and self._odd_operator(token):
                refuse(f"'{token.text}'", "compare with =, <>, <, <=, >, >=, LIKE, IN, BETWEEN and IS NULL")
            if tight < max(least, 0):
                return left
            self._next()
            left = Binary(operator, left, self._value(tight + 1))
        raise ConditionError(f"it has more than {MOST_CHAINED} values in a row")

    def _odd_operator(self, token: Token) -> bool:
        words = ("COLLATE", "REGEXP", "RLIKE", "SIMILAR", "OPERATOR", "AT", "SOUNDS", "MEMBER", "DIV", "MOD", "OVER")
        return token.word in words

    def _signed(self) -> Expression:
        negative = False
        while self._is_sign("-", "+"):
            negative ^= self._next().text == "-"
        found = self._cast()
        return Negative(found) if negative else found

    def _cast(self) -> Expression:
        found = self._single()
        if self._take_sign("::"):
            if self._dialect.double_quoted_text:
                refuse("'::'", "write CAST(… AS …)")
            found = Cast(found, *self._type())
        return found

    def _single(self) -> Expression:
        token = self._now()
        if token.kind == "text":
            self._next()
            return Text(token.text)
        if token.kind == "number":
            self._next()
            return Number(token.text)
        if token.kind == "bytes":
            self._next()
            return Bytes(token.text)
        if self._take_sign("("):
            found = self.condition()
            if self._is_sign(","):
                refuse("a row of several values", "compare the columns one by one")
            self._expect(")")
            return found
        if token.kind == "name":
            return self._named()
        if token.kind != "word":
            self._unexpected("a column or a value")
        return self._by_word(token)

    def _by_word(self, token: Token) -> Expression:
        word = token.word
        ahead = self._now(1)
        opens = ahead.kind == "sign" and ahead.text == "("
        if word in ("TRUE", "FALSE", "NULL"):
            self._next()
            return Constant(word)  # type: ignore[arg-type]
        if word == "CAST" and opens:
            return self._cast_call()
        if word == "EXTRACT" and opens:
            return self._extract()
        if word == "INTERVAL" and self._dialect.periods:
            return self._period()
        if word in self._dialect.typed and ahead.kind == "text":
            self._next()
            return Typed(word, self._next().text)
        if word in self._dialect.clocks and not opens and not self._is_column(token):
            self._next()
            return Call(word.lower(), ())
        if word in _RESERVED and not (word == "MOD" and opens):
            self._unexpected("a column or a value")
        if opens:
            return self._call()
        if token.text.lower() in self._dialect.session_words:
            refuse(f"'{token.text}'", "if it is a column, put it between quotes")
        return self._named()

    def _call(self) -> Expression:
        token = self._next()
        name = token.text.lower()
        known = self._dialect.functions.get(name)
        if known is None:
            allowed = ", ".join(sorted(self._dialect.functions))
            refuse(f"the function '{token.text}'", f"these are allowed: {allowed}")
        self._expect("(")
        arguments: list[Expression] = []
        if not self._is_sign(")"):
            arguments.append(self.condition())
            while self._take_sign(","):
                arguments.append(self.condition())
        self._expect(")")
        least, most = known
        if not least <= len(arguments) <= most:
            raise ConditionError(f"it has the function '{name}' with {len(arguments)} arguments")
        return Call(name, tuple(arguments))

    def _cast_call(self) -> Expression:
        self._next()
        self._expect("(")
        operand = self.condition()
        self._expect_word("AS")
        found = Cast(operand, *self._type())
        self._expect(")")
        return found

    def _type(self) -> tuple[str, tuple[int, ...]]:
        words: list[str] = []
        while self._now().word and " ".join([*words, self._now().word]) in self._type_beginnings():
            words.append(self._next().word)
        name = " ".join(words)
        if name not in self._dialect.types:
            shown = name or self._now().text
            refuse(f"a cast to '{shown[:80]}'", f"these are allowed: {', '.join(sorted(self._dialect.types)).lower()}")
        sizes: list[int] = []
        if self._take_sign("("):
            sizes.append(self._size())
            while self._take_sign(","):
                sizes.append(self._size())
            self._expect(")")
        if len(sizes) > self._dialect.types[name]:
            raise ConditionError(f"it has a cast to {name.lower()} with {len(sizes)} sizes")
        return name, tuple(sizes)

    def _type_beginnings(self) -> set[str]:
        return {" ".join(name.split()[: n + 1]) for name in self._dialect.types for n in range(len(name.split()))}

    def _size(self) -> int:
        token = self._next()
        if token.kind != "number" or not token.text.isdecimal() or len(token.text) > 4:
            raise ConditionError(f"it has '{token.text[:80]}' where a type's size must follow")
        return int(token.text)

    def _extract(self) -> Expression:
        self._next()
        self._expect("(")
        field = self._next().word
        if field not in EXTRACTED:
            raise ConditionError(f"it has EXTRACT of something that is none of {', '.join(sorted(EXTRACTED)).lower()}")
        self._expect_word("FROM")
        found = Extract(field, self.condition())
        self._expect(")")
        return found

    def _period(self) -> Expression:
        self._next()
        amount = self._signed()
        inner = amount.operand if isinstance(amount, Negative) else amount
        unit = self._next().word
        if unit not in self._dialect.periods or not isinstance(inner, Number | Text):
            units = ", ".join(sorted(self._dialect.periods)).lower()
            raise ConditionError(f"it has an INTERVAL that isn't a number and one of {units}")
        return Period(amount, unit)

    # Names.

    def _name(self) -> list[Token]:
        parts = [self._part()]
        while self._take_sign("."):
            parts.append(self._part())
        return parts

    def _part(self) -> Token:
        if self._now().kind not in ("word", "name") or self._now().word in _RESERVED:
            self._unexpected("a name")
        return self._next()

    def _named(self) -> Column:
        return self._resolve(self._name())

    def _is_column(self, token: Token) -> bool:
        return self._exact(token) is not None

    def _exact(self, token: Token) -> str | None:
        """Return the exact name of a column."""
        wanted = self._folded(token)
        if wanted in self._table.columns:
            return wanted
        # What Oracle would refuse is harmless: the name is sent as it is found.
        if self._dialect.double_quoted_text or (self._dialect.upper_case and token.kind != "name"):
            return next((name for name in self._table.columns if name.lower() == wanted.lower()), None)
        return None

    def _resolve(self, parts: list[Token]) -> Column:
        *before, last = parts
        if before and not self._is_this_table([self._folded(token) for token in before]):
            shown = ".".join(token.text for token in parts)
            refuse(f"'{shown}'", f"it can only read its own table, {'.'.join(self._table.names[0])}")
        if self._now().kind == "sign" and self._now().text == "(":
            refuse(f"the function '{'.'.join(token.text for token in parts)}'", "functions have no schema here")
        name = self._exact(last)
        if name is None:
            raise ConditionError(f"the table has no column '{last.text}'")
        if name in self._table.hidden:
            refuse(f"the column '{name}'", "events leave it out or change it, and a condition would reveal its values")
        return Column(name)

    def _is_this_table(self, parts: list[str]) -> bool:
        if self._alias:
            return self._same(parts, [self._alias])
        return any(self._same(parts, list(name)[-len(parts) :]) for name in self._table.names)

    def _same(self, given: list[str], known: list[str]) -> bool:
        if self._dialect.double_quoted_text or self._dialect.upper_case:
            return [part.lower() for part in given] == [part.lower() for part in known]
        return given == known

    def _folded(self, token: Token) -> str:
        """Return a name as the server reads it: without quotes, PostgreSQL takes ASCII's letters as lower-case ones."""
        if token.kind == "name" or self._dialect.double_quoted_text:
            return token.text
        if self._dialect.upper_case:
            return token.text.upper()
        return "".join(letter.lower() if letter.isascii() else letter for letter in token.text)
