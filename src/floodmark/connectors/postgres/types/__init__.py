"""PostgreSQL's types: from the server's text to Debezium's JSON, and to typed columns.

The server's text is what pgoutput and COPY print under ``server.connection.SESSION_SETTINGS``. ``registry`` finds the
codec of a column (the interface is ``floodmark.codecs.codec``). ``tokens`` finds the words in structured text,
``defaults`` converts columns' defaults, ``source_types`` describes types as JDBC does. Most other modules hold the
codecs of one family of types.

The values follow Debezium 3.6.3 (``tests/conformance/README.md``) except where its value is wrong or
missing:

- ``infinity`` and ``-infinity`` as a ``date`` are the largest and smallest int32 (Debezium: days that lie
  in between, the wrong way round).
- Dates before 1582-10-15 and BC are proleptic Gregorian, as in Debezium's streams; its snapshots differ.
- ``numeric(p,-s)`` has scale 0 (Debezium: scale 2048-s and hundreds of digits).
- ``time.precision.mode=adaptive``: timestamps past 294247-01-10 04:00:54.775807 are saturated; Debezium
  lets those of the same second overflow.
- Floating-point numbers are written as by Java 19 and later (shortest; JDK-4511638). Older ones give some
  numbers above 2**25 (real) or 2**54 (double) more digits than needed, and other digits near the
  smallest ones.
- An unchanged large ``bytea`` with ``binary.handling.mode`` ``base64`` or ``base64-url-safe`` is the
  encoded placeholder (Debezium: null, which cannot be distinguished from a value).
- Debezium stops at intervals of more than 2147483647 hours, at infinite ones, and at a ``timetz`` with seconds
  in its offset; here they have a value.
- ``name`` has its value in streams too (Debezium: null).
- Elements of arrays are encoded as scalars are; Debezium cuts times to milliseconds, shifts old dates, and has
  null for arrays of bits, and for those with a null or a NaN that the element can't represent.
"""
