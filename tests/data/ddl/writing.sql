-- a comment before
CREATE TABLE commented (a INT -- to the end of the line
, b INT # another kind
, /* inside */ c INT /* , d INT */
);

/* first */ ALTER /* x */ TABLE /* y */ commented /* z */ ADD /**/ COLUMN e INT;

# hash
ALTER TABLE commented ADD COLUMN f INT /* don't */;

ALTER TABLE commented /*!50000 ADD COLUMN g INT */;

ALTER TABLE commented ADD COLUMN h INT /*!50000 NOT NULL */ /*!80000 COMMENT 'eight' */ /*!99999 FIRST */;

/*!40101 CREATE TABLE versioned (a INT, b INT) */;

CREATE TABLE versioned_inside (a INT /*!, b INT */, c INT);

/*!50003 DROP TABLE versioned */;

CREATE TABLE `back``ticked` (`a``b` INT, `c d` INT, ` leading` INT, `1st` INT, `ta	b` INT);

CREATE TABLE 1st_table (1st INT, 2nd_col VARCHAR(3), a1b2 INT, $dollar INT, _under INT);

CREATE TABLE writing.1more (1ex INT);

CREATE TABLE no_space(a INT,b INT,PRIMARY KEY(a),KEY(b))ENGINE=InnoDB;

CREATE TABLE
  many_lines
(
  a
    INT
      NOT
        NULL
  ,
  PRIMARY
    KEY
      (a)
)
;

CREATE TABLE keywords_unquoted (name INT, type INT, date DATE, time TIME, timestamp TIMESTAMP NULL, status INT, level INT, value INT, comment INT, data INT, action INT, user INT, password INT, role INT, host INT, engine INT, version INT, hash INT, url INT, temporary INT, truncate INT, begin INT, end INT, open INT, close INT, start INT, `desc` INT, enabled INT, visible INT, storage INT, srid INT, period INT, sequence INT);

CREATE TABLE string_traps (a VARCHAR(50) DEFAULT 'a), b INT', b VARCHAR(50) COMMENT '/* not a comment */ -- nor this', c VARCHAR(9) DEFAULT '\\', d VARCHAR(9) DEFAULT '''', e VARCHAR(9) DEFAULT "\"", f VARCHAR(9) DEFAULT '`', g INT COMMENT 'semi;colon');

SET SESSION sql_mode = 'ANSI_QUOTES';

CREATE TABLE "ansi" ("a" INT, "b ""quoted""" VARCHAR(10) DEFAULT 'x', `c` INT, "default" INT, PRIMARY KEY ("a"));

ALTER TABLE "ansi" ADD COLUMN "d" ENUM('a','b"c') NOT NULL DEFAULT 'b"c', RENAME COLUMN "c" TO "cc";

ALTER TABLE "writing"."ansi" DROP COLUMN "default", COMMENT = 'it''s "ansi"';

SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES';

CREATE TABLE no_escapes (a VARCHAR(9) DEFAULT 'a\', b VARCHAR(9) DEFAULT '\n', c VARCHAR(9) COMMENT 'C:\dir\', d ENUM('\', 'b'));

SET SESSION sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES';

CREATE TABLE "neither" ("a\" VARCHAR(9) DEFAULT '\');

SET SESSION sql_mode = 'REAL_AS_FLOAT';

CREATE TABLE real_float (a REAL, b DOUBLE PRECISION);

SET SESSION sql_mode = 'ANSI';

CREATE TABLE "ansi_all" ("a" REAL, b VARCHAR(3) DEFAULT 'q');

SET SESSION sql_mode = DEFAULT;

create table MixedCase (Id int primary key, CamelCase varchar(10));

alter table MixedCase modify CAMELCASE varchar(20), add constraint uq unique (camelcase);

ALTER TABLE MixedCase DROP COLUMN camelCASE;

CREATE TABLE hints /*+ NO_MERGE() */ (a INT);

CREATE TABLE nested_comments (a INT /* outer ' " ` */ , b INT /*!50001 DEFAULT 1 */);

CREATE TABLE null_words (a INT NULL DEFAULT NULL, b VARCHAR(5) NULL, c INT NOT NULL, d TEXT NULL);

CREATE DATABASE dotted;

CREATE TABLE dotted.here (a INT);

DROP TABLE dotted .here;

DROP DATABASE dotted;
