"""MySQL's and MariaDB's types: from raw columns to Debezium's JSON, and to typed columns.

``registry`` finds the codec of a column; ``source_types`` returns its type as Debezium reports it; ``defaults`` reads
its default; the other modules hold one family of types each.

The values follow Debezium 3.6.3 (``tests/conformance/README.md``). Where its snapshots and streams differ, both are
the same here:

- ``timestamp`` has the digits of a second's fraction that were declared, as in streams.
- ``float`` is the number that is stored, as in streams (snapshots: six digits of it).
- Dates between 1582-10-05 and 1582-10-14 are proleptic Gregorian, as in streams.
- Dates with a zero in year, month or day are null, as in streams, or where the column is NOT NULL its default or the
  epoch.
- ``year`` 0 is 2000, as in snapshots (streams: 1900).
- Labels of ``enum`` and ``set`` are those that the table has, as in snapshots (streams: with backslashes, and with
  ``?`` for characters beyond U+FFFF).
- JSON has no spaces, as in streams, and numbers and values of SQL types as the server prints them, as in snapshots
  (streams: up to hundreds of digits of a double; bytes without their type).
- Text of every character set is what the server converts it to (streams: broken in koi8u and cp932).
"""
