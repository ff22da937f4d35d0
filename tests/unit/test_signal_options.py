"""The options of signals and notifications."""

from __future__ import annotations

import pytest

from floodmark.connectors.load import load_options
from floodmark.errors import ConfigError
from tests.support.options import REQUIRED


def test_defaults_are_debeziums() -> None:
    options = load_options(REQUIRED)
    assert options.signal_enabled_channels == ("source",)
    assert options.signal_data_collection == ()
    assert options.signal_file == "file-signals.txt"
    assert options.signal_poll_interval_ms == 5000
    assert options.notification_enabled_channels == ()
    assert options.incremental_snapshot_chunk_size == 1024
    assert options.incremental_snapshot_watermarking_strategy == "insert_insert"
    assert options.incremental_snapshot_read_points == "exact"
    assert not options.read_only


def test_signals_are_taken_from_the_named_table_while_the_channel_is_on() -> None:
    table = {"signal.data.collection": "public.signals"}
    assert load_options({**REQUIRED, **table}).takes_signals("public", "signals")
    assert not load_options({**REQUIRED, **table}).takes_signals("public", "orders")
    assert not load_options({**REQUIRED, **table, "signal.enabled.channels": "file"}).takes_signals("public", "signals")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"signal.enabled.channels": "sourc"}, "Did you mean 'source'?"),
        ({"signal.enabled.channels": "source,kafka"}, "'signal.kafka.bootstrap.servers' is required"),
        ({"signal.data.collection": "signals"}, "as schema.table"),
        ({"notification.enabled.channels": "sinks"}, "Did you mean 'sink'?"),
        ({"notification.enabled.channels": "log,sink"}, "'notification.sink.topic.name' is required"),
        ({"incremental.snapshot.chunk.size": "0"}, "at least 1"),
        ({"incremental.snapshot.watermarking.strategy": "insert"}, "insert_insert, insert_delete"),
        ({"incremental.snapshot.read.points": "watermark"}, "Did you mean 'watermarks'?"),
        ({"incremental.snapshot.read.points": "watermarks"}, "'signal.data.collection' is required, since"),
        (
            {
                "incremental.snapshot.read.points": "watermarks",
                "signal.data.collection": "public.signals",
                "read.only": "true",
            },
            "Option 'read.only' is 'true', but",
        ),
    ],
)
def test_wrong_values_are_named(options: dict[str, str], expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_options({**REQUIRED, **options})
    assert expected in str(caught.value)


def test_notifications_may_go_to_several_places() -> None:
    channels = {"notification.enabled.channels": "sink, log, my.module:tell", "notification.sink.topic.name": "n"}
    assert load_options({**REQUIRED, **channels}).notification_enabled_channels == ("sink", "log", "my.module:tell")
