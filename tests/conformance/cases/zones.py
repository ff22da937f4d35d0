"""Cases of Debezium's converter of time zones."""

from __future__ import annotations

from tests.conformance.cases.case import Case
from tests.conformance.cases.cloud_events import CLOUD_EVENTS
from tests.conformance.cases.routing import chained
from tests.conformance.cases.transforms import EVERY_OPERATION, EXTRACT

CONVERTER = "io.debezium.transforms.TimezoneConverter"
COLUMNS = (
    "id integer PRIMARY KEY, t timestamp, z timestamptz, m timestamp(3), zm timestamptz(3), d date, "
    "c time, cz timetz, dd timestamp DEFAULT '2026-07-01 12:00:00', "
    "zd timestamptz DEFAULT '2026-07-01 12:00:00Z', v text"
)
TABLES = (
    f"CREATE TABLE moments ({COLUMNS})",
    f'CREATE TABLE "other t" ({COLUMNS})',
    'ALTER TABLE "other t" REPLICA IDENTITY FULL',
    "INSERT INTO moments VALUES (1, '2026-01-02 03:04:05.678901', '2026-01-02 03:04:05.6Z', '2026-01-02 03:04:05.678', "
    "'2026-01-02 03:04:05.678Z', '2026-01-02', '03:04:05', '03:04:05.5+02', NULL, NULL, 'snapshot')",
)
TIMES = (
    # New York's clocks are set at 2026-03-08 07:00Z and 2026-11-01 06:00Z; Kolkata's were in the 1940s.
    *(f"2026-03-08 0{hour}:{minute}:00" for hour in (1, 2, 3, 6, 7) for minute in ("00", "30", "59")),
    *(f"2026-11-01 0{hour}:{minute}:00.000001" for hour in (0, 1, 2, 5, 6) for minute in ("00", "30", "59")),
    "1850-06-01 00:00:00",
    "1883-11-18 12:03:58",
    "1918-03-31 02:30:00",
    "1945-08-14 23:00:00",
    "1969-12-31 23:59:59.999999",
    "1970-01-01 00:00:00",
    "2038-07-01 00:00:00",
    "2480-07-01 12:34:56.120000",
    "3999-03-14 02:30:00",
    "9999-12-31 23:59:59",
    "0001-01-01 00:00:00",
)


def insert(table: str, first: int, times: tuple[str, ...]) -> str:
    """Return a statement that inserts rows with times."""
    rows = (
        f"({number}, '{text}', '{text}Z', '{text}', '{text}Z', '{text[:10]}', '{text[11:]}', '{text[11:]}Z')"
        for number, text in enumerate(times, first)
    )
    return f'INSERT INTO "{table}" (id, t, z, m, zm, d, c, cz) VALUES {", ".join(rows)}'


EVENTS = (
    insert("moments", 2, TIMES),
    insert("other t", 1, TIMES[:3]),
    "INSERT INTO moments (id, cz, z) VALUES (100, '23:59:59.999999-12', '2026-06-05 00:00:00.5+05:30')",
    "UPDATE moments SET v = 'x', dd = NULL, zd = NULL WHERE id < 4",
    "UPDATE \"other t\" SET v = 'x', t = t + interval '1 hour'",
    'DELETE FROM "other t"',
    "DELETE FROM moments WHERE id < 3",
    "TRUNCATE moments",
)


def converted(
    name: str,
    zone: str,
    options: dict[str, str] | None = None,
    schemas: bool = False,
    others: dict[str, str] | None = None,
    more: dict[str, dict[str, str]] | None = None,
) -> Case:
    """Return a case of the converter.

    Args:
        name: behind ``zone_``.
        zone: the time zone.
        options: the transform's others.
        schemas: whether records have schemas.
        others: further options.
        more: transforms that follow.
    """
    transforms = chained(zone={"type": CONVERTER, "converted.timezone": zone, **(options or {})}, **(more or {}))
    return Case(f"zone_{name}", TABLES, EVENTS, {**EVERY_OPERATION, **transforms, **(others or {})}, schemas)


CONNECT = {"time.precision.mode": "connect"}
AS_NULL = {"value.converter.replace.null.with.default": "false"}
CASES = (
    converted("offset_schemas", "+05:30", schemas=True),
    converted("offset_seconds", "-11:22:33", others=AS_NULL, more={"unwrap": {"type": EXTRACT}}),
    converted("kolkata", "Asia/Kolkata"),
    converted("connect", "Asia/Kolkata", others=CONNECT),
    converted("daylight", "America/New_York", {"exclude.list": "source:moments:cz,other t:cz"}),
    converted("daylight_connect", "America/New_York", {"exclude.list": "source:moments:cz,other t:cz"}, others=CONNECT),
    converted("utc", "UTC"),
    converted("included", "Australia/Lord_Howe", {"include.list": "source:moments:z,moments:before.t"}),
    converted(
        "included_topic", "Europe/Berlin", {"include.list": "topic:golden.public.moments:t,golden.public.moments:d"}
    ),
    converted("included_any", "-03:00", {"include.list": "moments:after.zm,golden.public.other_t:before.z"}),
    converted("included_table", "+01:00", {"include.list": "source:moments"}),
    converted("excluded", "+14:00", {"exclude.list": "source:moments:t,moments:z,moments:v"}),
    converted("excluded_table", "+14:00", {"exclude.list": "source:moments"}),
    converted("cloud_events", "+02:00", {"exclude.list": "source:moments:source.ts_us"}, others=CLOUD_EVENTS),
    converted(
        "unwrapped",
        "+02:00",
        more={"unwrap": {"type": EXTRACT, "add.fields": "op,source.table"}},
    ),
)
