CREATE TABLE a (id INT PRIMARY KEY, from_a INT);

CREATE TABLE b (id INT PRIMARY KEY, from_b VARCHAR(10));

RENAME TABLE a TO a1;

RENAME TABLE a1 TO a;

RENAME TABLE a TO tmp, b TO a, tmp TO b;

RENAME TABLE a TO c, c TO d, d TO e;

RENAME TABLE e TO a, b TO b_old, a TO b;

CREATE DATABASE renames_other;

RENAME TABLE b TO renames_other.b;

RENAME TABLE renames_other.b TO renames.b2, b_old TO renames_other.b;

RENAME TABLE `renames`.`b2` TO `renames`.`b three`;

ALTER TABLE `b three` RENAME renames_other.`b four`;

ALTER TABLE renames_other.`b four` RENAME TO b4;

ALTER TABLE renames_other.b RENAME renames.b;

CREATE TABLE renames_other.like_b LIKE b;

CREATE TABLE like_b LIKE renames_other.like_b;

CREATE TABLE IF NOT EXISTS like_b LIKE b4;

CREATE TABLE like_b2 (LIKE b);

USE renames_other;

CREATE TABLE in_other (a INT);

ALTER TABLE renames.b ADD COLUMN from_elsewhere INT;

RENAME TABLE in_other TO renames.in_other;

DROP TABLE renames.in_other;

USE renames;

RENAME TABLES b TO b9;

CREATE TABLE `rénamé` (`ключ` INT PRIMARY KEY, `値` VARCHAR(10) COMMENT 'コメント');

RENAME TABLE `rénamé` TO `après`;

DROP TABLE IF EXISTS `après`;

CREATE TABLE `select` (`from` INT, `where` INT);

RENAME TABLE `select` TO `table`;

ALTER TABLE `table` RENAME `a.b`;

ALTER TABLE `a.b` RENAME `with "quotes"`;

RENAME TABLE `with "quotes"` TO `it's`;

DROP TABLE `it's`;

CREATE TABLE orders (id INT PRIMARY KEY, v INT);

CREATE TABLE orders_new LIKE orders;

ALTER TABLE orders_new ADD COLUMN w INT, ADD KEY (w);

RENAME TABLE orders TO orders_old, orders_new TO orders;

RENAME TABLE orders TO orders_new, orders_old TO orders;

DROP TABLE orders_new;

DROP DATABASE renames_other;

DROP DATABASE IF EXISTS renames_other;
