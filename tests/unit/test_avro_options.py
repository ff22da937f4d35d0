from __future__ import annotations

import re
from pathlib import Path

import pytest
from confluent_kafka.schema_registry.error import SchemaRegistryError

from floodmark.changes.layout_groups import LayoutGroups
from floodmark.config.avro import AvroOptions
from floodmark.connectors.load import load_options
from floodmark.connectors.mysql.decode.structure import TableStructure
from floodmark.connectors.mysql.options import MysqlOptions
from floodmark.connectors.mysql.structures.table import Table
from floodmark.errors import ConfigError, ConnectError, FloodmarkError, LoginError, RegistryError
from floodmark.events.columns import event_schema
from floodmark.schema_registry.failures import failure
from floodmark.transforms.avro.converter import AvroConverter, avro_converters
from floodmark.verification.source import reading_options
from tests.support.avro import avro_options
from tests.support.options import REQUIRED_MYSQL
from tests.unit.test_debezium_options import BASE

URL = "http://me:geheim@registry:8081"
POSTGRES = {"connector": "postgres", **BASE}


def test_the_page_has_every_option() -> None:
    page = (Path(__file__).parents[2] / "docs" / "avro.md").read_text(encoding="utf-8")
    table = page.split("## Options")[1].split("## Schemas")[0]
    listed = {name for line in table.splitlines() if line.startswith("| `") for name in _names(line)}
    assert listed == set(AvroOptions.names())


def _names(line: str) -> list[str]:
    return re.findall(r"`([a-z.]+)`", line.split("|")[1])


def test_each_side_has_its_options() -> None:
    given = {
        **avro_options(URL, "value", connect_meta_data="false"),
        "key.converter.schemas.enable": "true",
        "value.converter.schemas.enable": "false",
    }
    options = load_options({**POSTGRES, **given})
    assert options.key_avro is None
    assert options.value_avro is not None
    assert (options.value_avro.metadata, options.schemas_enable) == (False, True)
    assert options.binary_columns == ("value",)
    assert list(avro_converters(options)) == ["value"]
    assert isinstance(avro_converters(options)["value"], AvroConverter)
    assert [str(event_schema(options.binary_columns).field(name).type) for name in ("key", "value")] == [
        "string",
        "binary",
    ]
    both = load_options({**POSTGRES, **avro_options(URL), "schemas.enable": "true"})
    assert not both.schemas_enable
    assert both.writes_schemas
    assert "geheim" not in repr(both)
    assert "geheim" not in repr(both.key_avro)


def test_rows_are_read_without_what_only_events_have() -> None:
    of_events = {"transforms": "f", "transforms.f.type": "org.apache.kafka.connect.transforms.Filter"}
    options = reading_options({**POSTGRES, **avro_options(URL), **of_events})
    assert (options.format, options.binary_columns, options.transforms) == ("arrow", (), ())


def test_tables_of_one_layout_have_their_own_schemas() -> None:
    structures = [TableStructure(Table("d", name, ()), "mysql") for name in ("a", "b")]
    options = MysqlOptions.parse({**REQUIRED_MYSQL, **avro_options(URL, "key")})
    assert LayoutGroups(structures, options).shape.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"value.converter.schema.registry.url": "http://r"}, "Unknown option 'value.converter.schema.registry.url'"),
        ({**avro_options(URL), "value.converter.rule": "x"}, "Unknown option 'value.converter.rule'"),
        ({**avro_options("registry:8081")}, "'key.converter.schema.registry.url' has the value 'registry:8081', which"),
        ({**avro_options("")}, "'key.converter.schema.registry.url' is empty"),
        ({**avro_options(URL, basic_auth_credentials_source="USER_INFO")}, "basic.auth.user.info' is given"),
        (
            {**avro_options(URL, basic_auth_credentials_source="USER_INFO", basic_auth_user_info="geheim")},
            "must be a name and a password with a colon",
        ),
        ({**avro_options(URL, bearer_auth_token="geheim")}, "must be STATIC_TOKEN if"),
        ({**avro_options(URL), "format": "rows", "table.include.list": "a.b"}, "needs format=events"),
    ],
)
def test_what_is_wrong(given: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)) as error:
        load_options({**POSTGRES, **given})
    assert "geheim" not in str(error.value)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (SchemaRegistryError(401, 401, "me:geheim is wrong"), LoginError, "doesn't allow requests about"),
        (SchemaRegistryError(409, 409, "geheim"), RegistryError, "it isn't compatible with those"),
        (SchemaRegistryError(404, 40401, "none"), RegistryError, "auto.register.schemas=true"),
        (SchemaRegistryError(422, 42201, "x" * 5000), RegistryError, "field.name.adjustment.mode=avro"),
        (SchemaRegistryError(503, 50003, "busy"), ConnectError, "can't answer requests about"),
        (OSError(f"no route to {URL}"), ConnectError, "can't be reached: no route to http://…@registry:8081"),
        (OSError("[SSL: CERTIFICATE_VERIFY_FAILED]"), LoginError, "ssl.truststore.location"),
        (ValueError("Expecting value"), RegistryError, "something else than a registry does"),
    ],
)
def test_errors_say_what_to_do_and_no_secrets(error: Exception, kind: type[FloodmarkError], words: str) -> None:
    options = AvroOptions.parse(
        {
            "schema.registry.url": URL,
            "basic.auth.credentials.source": "USER_INFO",
            "basic.auth.user.info": "me:geheim",
        }
    )
    found = failure(options, "about the subject 's'", error)
    assert type(found) is kind
    assert words in str(found)
    assert "geheim" not in str(found)
    assert len(str(found)) < 1500
