"""Calls librdkafka, of which the package confluent-kafka brings a build, with whole columns of Arrow.

That package's own interface takes an object for each record. The functions, structures and numbers here are those of
librdkafka's header ``rdkafka.h``; they are part of its stable interface.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_ssize_t, c_void_p
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.errors import ConfigError

PRODUCER = 0
CONF_OK, CONF_UNKNOWN = 0, -2
ANY_PARTITION = -1
COPY, EACH_PARTITION = 0x2, 0x8
"""Flags: a record's value is copied, as its key always is; each record names its partition."""
EVENT_DELIVERY, EVENT_ERROR = 0x1, 0x8
PURGE_ALL = 0x1 | 0x2
"""Records that wait, and those that are on their way."""
QUEUE_FULL, FATAL, TIMED_OUT = -184, -150, -185
TOPIC, PARTITION, VALUE, KEY, FLAGS, HEADER = 1, 3, 4, 5, 7, 9
"""What a part of a record is, with ``rd_kafka_produceva``."""
REASON_BYTES = 512


class Message(ctypes.Structure):
    """``rd_kafka_message_t``: a record to send, or a delivery report."""

    _fields_ = (
        ("err", c_int),
        ("rkt", c_void_p),
        ("partition", ctypes.c_int32),
        ("payload", c_void_p),
        ("len", c_size_t),
        ("key", c_void_p),
        ("key_len", c_size_t),
        ("offset", ctypes.c_int64),
        ("_private", c_void_p),
    )


MESSAGE = np.dtype(Message)
"""The same for arrays."""


class _Bytes(ctypes.Structure):
    _fields_ = (("ptr", c_void_p), ("size", c_size_t))


class _Header(ctypes.Structure):
    _fields_ = (("name", c_char_p), ("val", c_char_p), ("size", c_ssize_t))


class _Union(ctypes.Union):
    _fields_ = (
        ("cstr", c_char_p),
        ("i", c_int),
        ("i32", ctypes.c_int32),
        ("mem", _Bytes),
        ("header", _Header),
        ("_pad", ctypes.c_char * 64),
    )


class Part(ctypes.Structure):
    """``rd_kafka_vu_t``: a part of a record."""

    _fields_ = (("vtype", c_int), ("u", _Union))


_FUNCTIONS: Mapping[str, tuple[Any, tuple[Any, ...]]] = {
    "rd_kafka_conf_new": (c_void_p, ()),
    "rd_kafka_conf_destroy": (None, (c_void_p,)),
    "rd_kafka_conf_set": (c_int, (c_void_p, c_char_p, c_char_p, c_char_p, c_size_t)),
    "rd_kafka_conf_set_events": (None, (c_void_p, c_int)),
    "rd_kafka_conf_dump": (POINTER(c_char_p), (c_void_p, POINTER(c_size_t))),
    "rd_kafka_conf_dump_free": (None, (POINTER(c_char_p), c_size_t)),
    "rd_kafka_new": (c_void_p, (c_int, c_void_p, c_char_p, c_size_t)),
    "rd_kafka_destroy": (None, (c_void_p,)),
    "rd_kafka_topic_new": (c_void_p, (c_void_p, c_char_p, c_void_p)),
    "rd_kafka_topic_destroy": (None, (c_void_p,)),
    "rd_kafka_topic_name": (c_char_p, (c_void_p,)),
    "rd_kafka_produce_batch": (c_int, (c_void_p, ctypes.c_int32, c_int, c_void_p, c_int)),
    "rd_kafka_produceva": (c_void_p, (c_void_p, POINTER(Part), c_size_t)),
    "rd_kafka_error_code": (c_int, (c_void_p,)),
    "rd_kafka_error_destroy": (None, (c_void_p,)),
    "rd_kafka_flush": (c_int, (c_void_p, c_int)),
    "rd_kafka_purge": (c_int, (c_void_p, c_int)),
    "rd_kafka_queue_get_main": (c_void_p, (c_void_p,)),
    "rd_kafka_queue_destroy": (None, (c_void_p,)),
    "rd_kafka_queue_poll": (c_void_p, (c_void_p, c_int)),
    "rd_kafka_event_type": (c_int, (c_void_p,)),
    "rd_kafka_event_message_next": (POINTER(Message), (c_void_p,)),
    "rd_kafka_event_error": (c_int, (c_void_p,)),
    "rd_kafka_event_error_string": (c_char_p, (c_void_p,)),
    "rd_kafka_event_destroy": (None, (c_void_p,)),
    "rd_kafka_fatal_error": (c_int, (c_void_p, c_char_p, c_size_t)),
    "rd_kafka_err2name": (c_char_p, (c_int,)),
    "rd_kafka_err2str": (c_char_p, (c_int,)),
}


class SettingError(ConfigError):
    """A setting that librdkafka refuses.

    Attributes:
        name: the setting's; empty where several don't go together.
        unknown: whether librdkafka has no setting of this name.
    """

    def __init__(self, name: str, unknown: bool, reason: str) -> None:
        super().__init__(reason)
        self.name = name
        self.unknown = unknown


@cache
def library() -> Any:
    """Return librdkafka, with the types of its functions.

    Raises:
        ConfigError: the package is not installed, or its build doesn't let others call librdkafka.
    """
    try:
        from confluent_kafka import cimpl
    except ImportError as error:
        raise ConfigError(
            f"The package that writes to Kafka is not installed: {error}.",
            "Install it with: pip install 'floodmark[kafka]', or set engine=spark.",
        ) from None
    # A library finds the functions of those that it is linked with.
    found = ctypes.CDLL(cimpl.__file__)
    try:
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(found, name)
            function.restype, function.argtypes = result, arguments
    except AttributeError as error:
        raise ConfigError(
            f"This build of confluent-kafka doesn't let others call librdkafka: {error}.",
            "Install its wheel from PyPI, or set engine=spark.",
        ) from None
    return found


def new_client(settings: Mapping[str, str]) -> int:
    """Return a new producer, which reports failed deliveries, and errors, as events.

    Args:
        settings: by librdkafka's names.

    Raises:
        SettingError: one is refused, or some don't go together.
    """
    kafka = library()
    reason = ctypes.create_string_buffer(REASON_BYTES)
    conf = kafka.rd_kafka_conf_new()
    for name, value in {**settings, "delivery.report.only.error": "true"}.items():
        found = kafka.rd_kafka_conf_set(conf, name.encode(), value.encode(), reason, REASON_BYTES)
        if found != CONF_OK:
            kafka.rd_kafka_conf_destroy(conf)
            raise SettingError(name, found == CONF_UNKNOWN, reason.value.decode(errors="replace"))
    kafka.rd_kafka_conf_set_events(conf, EVENT_DELIVERY | EVENT_ERROR)
    client: int | None = kafka.rd_kafka_new(PRODUCER, conf, reason, REASON_BYTES)
    if client is None:
        kafka.rd_kafka_conf_destroy(conf)
        raise SettingError("", False, reason.value.decode(errors="replace"))
    return client


def setting_names() -> list[str]:
    """Return the names of librdkafka's settings."""
    kafka = library()
    conf, count = kafka.rd_kafka_conf_new(), c_size_t()
    texts = kafka.rd_kafka_conf_dump(conf, ctypes.byref(count))
    names = [texts[index].decode() for index in range(0, count.value, 2)]
    kafka.rd_kafka_conf_dump_free(texts, count)
    kafka.rd_kafka_conf_destroy(conf)
    return names


def messages_of(keys: pa.Array, values: pa.Array, partitions: pa.Array | None = None) -> NDArray[np.void]:
    """Return records as librdkafka takes them, shape (records,); they point into the columns.

    Args:
        keys: texts or binaries; null: a record has no key.
        values: the same; null: a tombstone.
        partitions: numbers; null: one by the record's key.
    """
    found = np.zeros(len(values), MESSAGE)
    found["payload"], found["len"] = places_of(values)
    found["key"], found["key_len"] = places_of(keys)
    found["partition"] = ANY_PARTITION if partitions is None else partitions.fill_null(ANY_PARTITION).to_numpy()
    return found


_LARGE = (pa.large_binary(), pa.large_string())
_NOTHING = pa.py_buffer(b"\0")
"""Where values without bytes are, which aren't null."""


def places_of(column: pa.Array) -> tuple[NDArray[np.uintp], NDArray[np.uintp]]:
    """Return the address and the length of each value of a column of texts or binaries; those of null are 0."""
    if not len(column):
        return np.zeros(0, np.uintp), np.zeros(0, np.uintp)
    _, offsets, data = column.buffers()
    width = np.dtype(np.int64 if column.type in _LARGE else np.int32)
    ends = np.frombuffer(offsets, width, len(column) + 1, column.offset * width.itemsize).astype(np.uintp)
    base = np.uintp(_NOTHING.address if data is None or not data.size else data.address)
    starts, lengths = ends[:-1] + base, np.diff(ends)
    if column.null_count:
        is_null = column.is_null().to_numpy(zero_copy_only=False)
        starts[is_null] = lengths[is_null] = 0
    return starts, lengths


def error_name(code: int) -> str:
    """Return the name of an error, such as ``MSG_SIZE_TOO_LARGE``."""
    return str(library().rd_kafka_err2name(code).decode())


def error_text(code: int) -> str:
    """Return librdkafka's words for an error."""
    return str(library().rd_kafka_err2str(code).decode(errors="replace"))
