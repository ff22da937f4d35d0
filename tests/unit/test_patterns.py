"""Regular expressions: Python's syntax and meaning, and never more than linear time."""

from __future__ import annotations

import os
import pickle
import random
import re
import time
import warnings

import pytest

from floodmark.config.patterns import MOST_CHARACTERS, Pattern, PatternError
from floodmark.connectors.load import load_options
from floodmark.errors import ConfigError
from tests.support.options import REQUIRED
from tests.support.patience import within

INPUTS = int(os.environ.get("FLOODMARK_FUZZ_INPUTS", "3000"))
LIMIT_S = within(2.0)
"""Far more than any match takes, also while the machine is busy; what searches for ever takes longer."""
ALPHABET = "aAbBzZ09_.-$ \té\u0130ßσ日"
LONG = "public." + "a_" * 100


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (r"public\.orders", "PUBLIC.Orders", "public_orders"),
        (r"public\.\w+", "public.größe", "public.a-b"),
        (r"public\.t_\d{2}", "public.t_٣٣", "public.t_3"),
        (r"[^.]+\.(?:a|b)+?", "x.abab", "x.y.a"),
        (r"a{,2}\s*", "aa\u2003", "aaa"),
        (r"(?P<schema>\w+)\.t(?#comment)$", "s.t", "s.t2"),
        (r"(?x) a . b  # verbose", "a.b", "a . b"),
        (r"[\]\-\\a-c]+", "]-\\b", "d"),
        (r"[[:alpha:]]", ":]", "x"),
        (r"\x41\u0042\N{DIGIT ONE}\101", "AB1A", "AB1"),
        (r"(?-i:A)b", "AB", "aB"),
        (r"(?a:\w)é", "eÉ", "éé"),
        (r"[\W\d]+", "1-9", "1-a"),
        (r"\D\S[^\d]", "a-b", "a b"),
        ("", "", "a"),
    ],
)
def test_expressions_mean_what_they_mean_to_python(pattern: str, matching: str, other: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        theirs = re.compile(pattern, re.IGNORECASE)
    ours = Pattern(pattern, ignore_case=True)
    assert ours.fullmatch(matching)
    assert theirs.fullmatch(matching)
    assert not ours.fullmatch(other)
    assert not theirs.fullmatch(other)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(?=a)b", "lookahead"),
        ("(?!temp_).*", "negative lookahead"),
        (".*(?<!_old)", "lookbehind"),
        ("(?!)", "negative lookahead"),
        (r"(a+)\1", "references to groups"),
        ("(a)?(?(1)b|c)", "conditions on groups"),
        ("(?>a+)b", "atomic groups"),
        ("a*+b", "possessive repetitions"),
        (r"[^\W_]", "negated class"),
        ("a{1001}", "repeats too often"),
        ("((a{500}){500}){500}", "repeats too often"),
        (r"(\w{999}|.{999}){999}", "too"),
        ("(" * 20_000, "nested too deeply"),
        ("a" * (MOST_CHARACTERS + 1), "longer than"),
        ("*", "nothing to repeat"),
        ("[", "unterminated"),
        ("\ud800", "surrogate"),
    ],
)
def test_what_takes_more_than_linear_time_is_refused_by_name(pattern: str, reason: str) -> None:
    with pytest.raises(PatternError, match=reason):
        Pattern(pattern)


def test_an_option_that_is_refused_says_which_pattern_and_what_to_do() -> None:
    with pytest.raises(ConfigError) as caught:
        load_options({**REQUIRED, "table.include.list": r"public\.a,public\.(?!temp_).*"})
    text = str(caught.value)
    for part in ("table.include.list", r"'public\.(?!temp_).*'", "negative lookahead", "option for exclusion"):
        assert part in text


@pytest.mark.parametrize(
    "pattern",
    [r"(?:[a-z_.]+)+!", r"(a|a)*b", r"(.*)*!", r"(\w+\s?)+$!", r"((a+)+)+b", r"(x+x+)+y", r"(?:a?){1000}a{1000}"],
)
def test_expressions_that_python_searches_for_ever(pattern: str) -> None:
    begun = time.monotonic()
    for text in (LONG, "a" * 10_000, "x" * 10_000, "ab" * 5_000 + "!"):
        Pattern(pattern, ignore_case=True).fullmatch(text)
    assert time.monotonic() - begun < LIMIT_S


def test_patterns_travel_and_compare() -> None:
    pattern = Pattern("a|b", ignore_case=True)
    copy = pickle.loads(pickle.dumps(pattern))
    assert copy == pattern
    assert hash(copy) == hash(pattern)
    assert copy.fullmatch("B")
    assert Pattern("a|b") != pattern


def generated(random_: random.Random, depth: int = 3) -> str:
    """Return an expression; some are wrong."""
    kind = random_.randrange(14 if depth else 5)
    if kind < 3:
        return re.escape(random_.choice(ALPHABET))
    if kind == 3:
        return random_.choice([".", r"\w", r"\d", r"\s", r"\W", r"\D", r"\S", "^", "$", r"\A", r"\Z", "", "|", "-"])
    if kind == 4:
        low, high = sorted(random_.choice("abcABCxyzXYZ019") for _ in "12")
        more = random_.choice(["", r"\d", r"\s", "_", "é", "-"])
        return f"[{random_.choice(['', '^'])}{low}-{high}{more}]"
    inner = generated(random_, depth - 1)
    if kind < 8:
        return inner + generated(random_, depth - 1)
    if kind < 10:
        repeat = random_.choice(["*", "+", "?", "{2}", "{,3}", "{1,}", "{0,2}", "*?", "+?", "??", "{1,4}?"])
        return f"(?:{inner}){repeat}"
    if kind == 10:
        return f"(?:{inner}|{generated(random_, depth - 1)})"
    if kind == 11:
        return f"({inner})"
    if kind == 12:
        return f"(?{random_.choice(['i', '-i', 's', 'a', ''])}:{inner})"
    return random_.choice(["(?={})", "(?!{})", "(?<={})", "(?>{})", "({})\\1", "{}++", "({})+"]).format(inner)


def test_generated_expressions_are_matched_as_python_does_or_refused() -> None:
    random_ = random.Random(5)
    refused = compared = matched = 0
    for _ in range(INPUTS):
        text = generated(random_)
        ignore_case = random_.random() < 0.5
        try:
            theirs = re.compile(text, re.IGNORECASE if ignore_case else 0)
        except (re.error, OverflowError):
            with pytest.raises(PatternError):
                Pattern(text, ignore_case)
            continue
        try:
            ours = Pattern(text, ignore_case)
        except PatternError:
            refused += 1
            assert re.search(r"\(\?[=!<>]|\\1|\+\+|\[\^", text), text
            continue
        for _ in range(3):
            # Short, so that Python's own matching ends. İ is folded to two characters by a rule of its own there.
            name = "".join(random_.choice(ALPHABET.replace("\u0130", "")) for _ in range(random_.randrange(8)))
            compared += 1
            found = theirs.fullmatch(name) is not None
            matched += found
            assert ours.fullmatch(name) == found, (text, ignore_case, name)
        begun = time.monotonic()
        ours.fullmatch(LONG)
        assert time.monotonic() - begun < LIMIT_S, text
    assert compared > INPUTS
    assert matched > INPUTS // 20
    assert refused > INPUTS // 50
