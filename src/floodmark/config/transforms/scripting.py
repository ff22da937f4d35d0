"""Options of Debezium's transforms that evaluate expressions, which are Spark's SQL here."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import model_validator

from floodmark.config.expressions.groovy import as_sql
from floodmark.config.expressions.parser import ExpressionError, parse_expression
from floodmark.config.expressions.tree import Expression
from floodmark.config.java_patterns import java_pattern
from floodmark.config.model import Options, option
from floodmark.config.patterns import Pattern, PatternError

LANGUAGE = "sql"
NullHandling = Literal["keep", "drop", "evaluate"]


class ScriptingOptions(Options):
    """Options that both have."""

    expression_option: ClassVar[str]
    """The name of the option with the expression."""
    example: ClassVar[str]
    """An expression."""

    language: str = option("language", ..., "The expression's language: `sql`.")
    topic_regex: str = option("topic.regex", "", "A regular expression; records of other topics stay as they are.")
    null_handling_mode: NullHandling = option(
        "null.handling.mode", "keep", "What becomes of records without a value; `evaluate`: the expression decides."
    )

    @model_validator(mode="after")
    def _check_expression(self) -> Self:
        text, name = self.text, self.expression_option
        if self.language.strip().lower() != LANGUAGE:
            found = as_sql(text)
            instead = f"this one is: {found}" if found else f"such as: {self.example}"
            raise ValueError(
                f"Option 'language' has the value '{self.language}', which is not allowed: it must be {LANGUAGE}, and "
                f"'{name}' an expression in Spark's SQL ({instead})."
            )
        try:
            parse_expression(text)
        except ExpressionError as exc:
            raise ValueError(f"Option '{name}' can't be used: {exc}.") from None
        try:
            self.topics  # noqa: B018
        except PatternError as exc:
            raise ValueError(f"Option 'topic.regex' ({self.topic_regex}) is wrong: {exc}.") from None
        return self

    @property
    def text(self) -> str:
        """The expression as it is written."""
        raise NotImplementedError

    @property
    def expression(self) -> Expression:
        """The expression."""
        return parse_expression(self.text)

    @property
    def topics(self) -> Pattern | None:
        """The pattern of the topics to which the transform is applied; None: to all."""
        return java_pattern(self.topic_regex) if self.topic_regex else None


class FilterOptions(ScriptingOptions):
    """Options of ``io.debezium.transforms.Filter``."""

    expression_option = "condition"
    example = "value.op = 'u' AND value.before.id = 2"

    condition: str = option("condition", ..., "The condition that records must meet, in Spark's SQL.")

    @property
    def text(self) -> str:
        """The condition as it is written."""
        return self.condition


class ContentBasedRouterOptions(ScriptingOptions):
    """Options of ``io.debezium.transforms.ContentBasedRouter``."""

    expression_option = "topic.expression"
    example = "CASE WHEN value.op = 'u' THEN 'updates' END"

    topic_expression: str = option(
        "topic.expression", ..., "The new topic, in Spark's SQL; where it is null, the topic stays."
    )

    @property
    def text(self) -> str:
        """The expression as it is written."""
        return self.topic_expression
