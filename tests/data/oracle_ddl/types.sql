CREATE TABLE numbers (plain NUMBER, digits NUMBER(5), digits_and_scale NUMBER(12,3), negative NUMBER(6,-2), fraction NUMBER(2,7), star NUMBER(*,0), whole INTEGER, short_whole INT, smaller SMALLINT, fixed_number NUMERIC, fixed_digits NUMERIC(9), fixed_both DECIMAL(9,4), fixed_plain DECIMAL);

CREATE TABLE binary_numbers (f FLOAT, g FLOAT(20), r REAL, d DOUBLE PRECISION, bf BINARY_FLOAT, bd BINARY_DOUBLE);

CREATE TABLE texts (c CHAR, c5 CHAR(5), cb CHAR(5 BYTE), cc CHAR(5 CHAR), ch CHARACTER(7), v VARCHAR2(30), vb VARCHAR2(30 BYTE), vc VARCHAR2(30 CHAR), old VARCHAR(9), n NCHAR, n3 NCHAR(3), nv NVARCHAR2(12), r RAW(16));

create table times (d date, t timestamp, t0 timestamp(0), t9 timestamp (9), z timestamp with time zone, z3 timestamp(3) with time zone, l timestamp with local time zone, l2 timestamp (2) with local time zone, y interval year to month, y4 interval year(4) to month, s interval day to second, s1 interval day(1) to second, s15 interval day (1) to second (5));

CREATE TABLE large_values (c CLOB, n NCLOB, b BLOB, x XMLTYPE, place ROWID, geometry SDO_GEOMETRY) LOB (c) STORE AS SECUREFILE (TABLESPACE users ENABLE STORAGE IN ROW CHUNK 8192 NOCACHE LOGGING) LOB (b) STORE AS BASICFILE b_segment (DISABLE STORAGE IN ROW);

CREATE TABLE "Quoted Names" ("Id" NUMBER(9,0), "lower" VARCHAR2(3), "SELECT" DATE);

DROP TABLE "Quoted Names"
