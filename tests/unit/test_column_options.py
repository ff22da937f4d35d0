"""What options of columns, keys and names mean, and what is said of wrong ones."""

from __future__ import annotations

import hashlib
import re

import pytest
from pydantic import SecretStr

from floodmark.changes.column_plan import Field, plan_columns
from floodmark.changes.layout_groups import LayoutGroups
from floodmark.changes.transforms import Hash, Mask, SchemaParameters, Truncation
from floodmark.config.columns import in_small_letters
from floodmark.connectors.postgres.decode.relation import Column, Relation
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.errors import ConfigError, SourceStateError
from floodmark.events.names import adjusted_field_name, adjusted_schema_name, legal_topic
from floodmark.events.topics import table_key_fields, table_topic

BASE = {
    "connector": "postgres",
    "topic.prefix": "p",
    "state.dir": "/nowhere",
    "database.hostname": "h",
    "database.user": "u",
    "database.dbname": "d",
}
TEXT = 25


def options(**given: str) -> PostgresOptions:
    return PostgresOptions.parse({**BASE, **{name.replace("_", "."): value for name, value in given.items()}})


def parsed(given: dict[str, str]) -> PostgresOptions:
    return PostgresOptions.parse({**BASE, **given})


def relation(*names: str, key: tuple[str, ...] = ("id",), table: str = "t", oid: int = 1) -> Relation:
    return Relation(oid, "public", table, "d", tuple(Column(name, TEXT, -1, False) for name in names), key)


def transforms(given: dict[str, str]) -> dict[str, object]:
    plan = plan_columns(relation("id", "a", "b", "c"), parsed(given))
    return {field.name: field.transform for field in plan.row}


def test_the_strictest_of_several_options_applies() -> None:
    found = transforms(
        {
            "column.truncate.to.3.chars": "public.t.(a|b|c)",
            "column.propagate.source.type": ".*",
            "column.mask.with.7.chars": "public.t.a",
            "column.mask.hash.v2.sha-256.with.salt.X": "public.t.[ab]",
        }
    )
    assert found["a"] == Mask(7, True)
    assert isinstance(found["b"], Hash)
    assert not found["b"].serialized
    assert found["c"] == Truncation(3, True)
    assert isinstance(found["id"], SchemaParameters)


def test_both_versions_of_hashes_are_told_apart() -> None:
    found = parsed({"column.mask.hash.SHA-256.with.salt.A.b": "a", "column.mask.hash.v2.MD5.with.salt.c": "b"})
    assert [(rule.algorithm, rule.salt.get_secret_value()) for rule in found.column_hash] == [("sha256", "A.b")]
    assert [(rule.algorithm, rule.salt.get_secret_value()) for rule in found.column_hash_v2] == [("md5", "c")]


SALT = "Qs3cr3t"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({f"column.mask.hash.SHA-257.with.salt.{SALT}": "a"}, "SHA-257"),
        ({f"column.mask.hash.SHA-256.with.slat.{SALT}": "a"}, "with.salt"),
        ({f"column.msk.hash.SHA-256.with.salt.{SALT}": "a"}, "Did you mean"),
        ({f"column.mask.hash.SHA-256.with.salt.{SALT}": "("}, "regular expression"),
        ({f"column.mask.hash.sha-256.with.salt.{SALT.lower()}": "a"}, "column.mask.salt.<name>"),
    ],
)
def test_no_error_shows_a_salt(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parsed(given)
    assert said in str(caught.value)
    assert SALT.lower() not in str(caught.value).lower()


def test_nothing_shows_a_salt() -> None:
    found = parsed({f"column.mask.hash.SHA-256.with.salt.{SALT}": "a", "column.mask.salt.name": SALT})
    shown = f"{found!r} {found} {found.values()} {plan_columns(relation('id', 'a'), found)}"
    assert SALT not in shown
    assert "column.mask.hash.<algorithm>.with.salt.<salt>" not in found.values()


def test_a_salt_can_be_named() -> None:
    lowered = {"column.mask.hash.sha-256.with.salt.main": "public.t.a", "column.mask.salt.main": SALT}
    found = parsed(lowered)
    assert found.salt_of(found.column_hash[0]).get_secret_value() == SALT
    assert found.column_hash[0].algorithm == "sha256"
    digits = parsed({"column.mask.hash.md5.with.salt.123": "a"})
    assert digits.salt_of(digits.column_hash[0]).get_secret_value() == "123"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"column.include.list": "a", "column.exclude.list": "b"}, "exclude each other"),
        ({"column.mask.with.x.chars": "a"}, "'x' is not a number of characters"),
        ({"column.truncate.to.5": "a"}, "Unknown option 'column.truncate.to.5'"),
        ({"message.key.columns": "public.t"}, "<table>:<column>"),
        ({"message.key.columns": ""}, "<table>:<column>"),
        ({"replica.identity.autoset.values": "public.t:ALL"}, "FULL"),
        ({"topic.naming.strategy": "io.debezium.schema.SchemaRegexTopicNamingStrategy"}, "topic.regex"),
        ({"topic.regex": "(a"}, "topic.replacement"),
        ({"topic.regex": "(a)", "topic.replacement": "$2"}, "invalid group reference"),
        ({"topic.naming.strategy": "SchemaTopicNamingStrategy"}, "Did you mean"),
        ({"converters": "isbn"}, "isbn.type"),
        ({"isbn.type": "x"}, "Unknown option 'isbn.type'"),
        ({"schema.name.adjustment.mode": "avro-unicode"}, "Did you mean 'avro_unicode'"),
        ({"guardrail.collections.limit.action": "stop"}, "warn, fail"),
    ],
)
def test_wrong_values(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        parsed(given)


def test_options_of_converters_belong_to_them() -> None:
    found = parsed({"converters": "a, B", "a.type": "x", "b.type": "y", "b.Columns.list": "z"})
    assert found.converter_settings("B") == {"type": "y", "columns.list": "z"}
    assert "<converter>.<option>" not in found.values()


def test_columns_that_are_left_out_stay_in_the_key() -> None:
    given = options(column_exclude_list=r"PUBLIC\.t\.(id|b),ublic.t.a", message_key_columns="public.u:a")
    plan = plan_columns(relation("id", "a", "b"), given)
    assert plan.row == (Field(1, "a", True),)
    assert plan.key == (Field(0, "id", True),)
    assert [field.column for field in plan_columns(relation("id", "a", "b", table="u"), given).key] == [1]


def test_keys_come_in_the_order_of_the_option() -> None:
    given = options(message_key_columns=r" public\.(t|u):b, A ;public.v:.*")
    plan = plan_columns(relation("id", "a", "b"), given)
    assert [field.name for field in plan.key] == ["b", "a"]
    every = plan_columns(relation("id", "a", "b", table="v"), given)
    assert [field.name for field in every.key] == ["id", "a", "b"]


def test_columns_of_the_same_name_are_refused() -> None:
    given = options(field_name_adjustment_mode="avro")
    with pytest.raises(SourceStateError, match=r"'a-b' and 'a\.b'"):
        plan_columns(relation("id", "a-b", "a.b"), given)


def test_tables_share_a_pass_if_their_plans_are_alike() -> None:
    tables = [relation("id", "a", table=name, oid=oid) for oid, name in enumerate("tuv")]
    assert LayoutGroups(tables, options()).shape.tolist() == [0, 0, 0]
    assert LayoutGroups(tables, options(column_exclude_list=r"public\.u\.a")).shape.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("name", "mode", "schema", "field"),
    [
        ("a-b.c_d", "none", "a-b.c_d", "a-b.c_d"),
        ("a-b.c_d", "avro", "a_b.c_d", "a_b_c_d"),
        ("a-b.c_d", "avro_unicode", "a_u002db.c_u005fd", "a_u002db_u002ec_u005fd"),
        ("1a", "avro", "_1a", "_1a"),
        ("1a", "avro_unicode", "_u0031a", "_u0031a"),
        ("é😀", "avro", "___", "___"),
        ("日\t", "avro_unicode", "_u65e5_u009", "_u65e5_u009"),
        ("", "avro", "", ""),
    ],
)
def test_adjusted_names(name: str, mode: str, schema: str, field: str) -> None:
    assert adjusted_schema_name(name, mode) == schema  # type: ignore[arg-type]
    assert adjusted_field_name(name, mode) == field  # type: ignore[arg-type]


def test_topics() -> None:
    assert legal_topic("a b😀", False) == "a_b__"
    assert legal_topic("a_b", True) == "a_u005fb"
    assert len(legal_topic("x" * 300, False)) == 249
    given = parsed(
        {
            "topic.naming.strategy": "io.debezium.schema.SchemaRegexTopicNamingStrategy",
            "topic.regex": r"(?<p>.*)\.public\.(.*)_\d+",
            "topic.replacement": r"${p}.$2\$",
        }
    )
    assert table_topic(given, "public", "shard_12") == "p.shard$"
    assert table_topic(given, "other", "shard_12") == "p.other.shard_12"
    assert table_key_fields(given, "public", "shard_12") == (("__dbz__physicalTableIdentifier", "p.public.shard_12"),)


def test_salts_survive_small_letters() -> None:
    given = {
        "column.mask.hash.SHA-256.with.salt.Ab.C": "a",
        "column.mask.hash.v2.MD5.with.salt.xY": "b",
        "column.mask.hash.v2.md5.with.salt.named": "c",
        "column.mask.salt.Named": "Zz",
    }
    passed = {name.lower(): value for name, value in in_small_letters({**BASE, **given}).items()}
    found = PostgresOptions.parse(passed)
    salts = [found.salt_of(rule).get_secret_value() for rule in (*found.column_hash, *found.column_hash_v2)]
    assert salts == ["Ab.C", "xY", "Zz"]
    assert [rule.columns[0].pattern for rule in found.column_hash_v2] == ["b", "c"]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("abc", b"t\x00\x03abc"),
        ("a\0b", b"t\x00\x04a\xc0\x80b"),
        ("é\0🌊", b"t\x00\x0a\xc3\xa9\xc0\x80\xed\xa0\xbc\xed\xbc\x8a"),
        ("x" * 65_536, b"|\x00\x00\x00\x00\x00\x01\x00\x00" + b"x" * 65_536),
    ],
    ids=["ASCII", "U+0000", "beyond U+FFFF", "long"],
)
def test_the_first_version_hashes_what_java_serialises(text: str, written: bytes) -> None:
    # Recorded from java.io.ObjectOutputStream.writeObject of Java 17.
    expected = hashlib.sha256(b"salt\xac\xed\x00\x05" + written).hexdigest()
    assert Hash("sha256", SecretStr("salt"), True, 0, True)._hash(text) == expected
