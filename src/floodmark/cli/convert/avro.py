"""What becomes of Confluent's converter to Avro, and of Debezium Server's format ``avro``."""

from __future__ import annotations

from collections.abc import Mapping

from floodmark.cli.convert.draft import Draft, is_secret_option
from floodmark.config.avro import AVRO, AvroOptions

_FORMER = {"schema.registry.basic.auth.user.info": "basic.auth.user.info"}
"""Names that options had before."""
_STORES = ("schema.registry.ssl.truststore", "schema.registry.ssl.keystore")
_PEM = "Java's keystores can't be read: write it as a PEM file, and set {}.location and {}.type=PEM"


def take_avro(draft: Draft, side: str, given: Mapping[str, str], origins: Mapping[str, str], origin: str) -> None:
    """Take a converter with its settings, of which its model says which there are.

    Args:
        draft: the pipeline file.
        side: ``key`` or ``value``.
        given: the settings, by what is behind ``<side>.converter.``.
        origins: the names that they have in the configuration.
        origin: the name of the property that names the converter, or the format.
    """
    converter = f"{side}.converter"
    draft.put(converter, AVRO, origin, "kept" if origin == converter else "mapped", f"{converter}: {AVRO}")
    of_java = [store for store in _STORES if given.get(f"{store}.type", "JKS").upper() != "PEM"]
    for name, value in given.items():
        option = _FORMER.get(name, name)
        store = next((one for one in of_java if name.startswith(f"{one}.")), None)
        if name == "schemas.enable":
            draft.say(origins[name], "no effect", "Avro has no schemas in keys and values")
        elif store is not None:
            draft.say(origins[name], "not supported", _PEM.format(store, store))
        elif not AvroOptions.knows(option):
            draft.say(origins[name], "not supported", "Floodmark's converter to Avro lacks it: see docs/avro.md")
        else:
            full = f"{converter}.{option}"
            secret = is_secret_option(AvroOptions, option) or ("://" in value and "@" in value)
            draft.put(full, value, origins[name], "kept" if origins[name] == full else "mapped", full, secret)
