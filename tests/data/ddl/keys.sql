CREATE TABLE inline_primary (id INT PRIMARY KEY, v INT);

CREATE TABLE inline_key (id INT KEY, v INT);

CREATE TABLE inline_primary_null (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, v INT UNIQUE, w INT NOT NULL UNIQUE KEY);

CREATE TABLE compound (a INT, b VARCHAR(10), c DATE, PRIMARY KEY (c, a));

CREATE TABLE named_constraint (a INT, b INT, CONSTRAINT pk PRIMARY KEY (a), CONSTRAINT u_b UNIQUE (b), CONSTRAINT UNIQUE KEY (b, a));

CREATE TABLE using_clauses (a INT, b INT, PRIMARY KEY USING BTREE (a), UNIQUE KEY u USING BTREE (b), INDEX i (b, a) USING BTREE);

CREATE TABLE primary_named (a INT NOT NULL, PRIMARY KEY my_pk (a));

CREATE TABLE only_unique (a INT, b INT NOT NULL, c INT NOT NULL, UNIQUE (a), UNIQUE (c), UNIQUE (b));

CREATE TABLE only_unique_nullable (a INT, b INT, UNIQUE u1 (a), UNIQUE u2 (b, a));

CREATE TABLE names_collide (a INT, UNIQUE (a), UNIQUE a_2 (a), KEY (a), KEY (a), UNIQUE (a));

CREATE TABLE prefixes (a VARCHAR(100) NOT NULL, b TEXT NOT NULL, c VARCHAR(5) NOT NULL, UNIQUE p (a(10)), UNIQUE q (b(20)), UNIQUE r (c), KEY s (a(3), b(4)));

CREATE TABLE directions (a INT NOT NULL, b INT, PRIMARY KEY (a DESC), KEY k (b ASC, a DESC));

CREATE TABLE fulltexts (id INT PRIMARY KEY, t TEXT, u VARCHAR(50), FULLTEXT KEY ft (t, u), FULLTEXT (u), FULLTEXT INDEX (t));

CREATE TABLE spatials (id INT PRIMARY KEY, g GEOMETRY NOT NULL, SPATIAL KEY (g), SPATIAL INDEX sp (g));

CREATE TABLE parents (id INT NOT NULL PRIMARY KEY, code INT NOT NULL, UNIQUE KEY code (code)) ENGINE=InnoDB;

CREATE TABLE children (id INT PRIMARY KEY, parent_id INT, parent_code INT, CONSTRAINT fk_parent FOREIGN KEY (parent_id) REFERENCES parents (id) ON DELETE CASCADE ON UPDATE SET NULL, FOREIGN KEY by_code (parent_code) REFERENCES parents (code) ON DELETE NO ACTION, INDEX (parent_id));

ALTER TABLE children ADD CONSTRAINT fk2 FOREIGN KEY (id) REFERENCES parents (id) ON UPDATE RESTRICT;

ALTER TABLE children DROP FOREIGN KEY fk2;

ALTER TABLE children DROP FOREIGN KEY fk_parent, DROP INDEX parent_id, DROP COLUMN parent_id;

CREATE TABLE inline_references (id INT PRIMARY KEY, p INT REFERENCES parents (id) ON DELETE CASCADE, q INT NOT NULL);

CREATE TABLE checks (a INT CHECK (a > 0), b INT, c INT, CHECK (a < b), CONSTRAINT c_range CHECK (c BETWEEN 1 AND 10 AND c <> ')'));

ALTER TABLE checks ADD CONSTRAINT more CHECK (c IS NOT NULL), DROP CONSTRAINT c_range;

CREATE TABLE key_changes (a INT NOT NULL, b INT NOT NULL, c INT);

ALTER TABLE key_changes ADD PRIMARY KEY (a);

ALTER TABLE key_changes DROP PRIMARY KEY, ADD PRIMARY KEY (b, a);

ALTER TABLE key_changes DROP PRIMARY KEY;

ALTER TABLE key_changes ADD UNIQUE KEY u_c (c);

ALTER TABLE key_changes ADD UNIQUE KEY u_b (b), ADD UNIQUE (a);

ALTER TABLE key_changes DROP KEY u_b;

ALTER TABLE key_changes DROP INDEX a, DROP INDEX u_c;

CREATE UNIQUE INDEX both_columns ON key_changes (a, b);

CREATE INDEX plain USING BTREE ON key_changes (c) COMMENT 'x';

DROP INDEX both_columns ON key_changes;

CREATE UNIQUE INDEX u ON key_changes (b) ALGORITHM = INPLACE LOCK = NONE;

ALTER TABLE key_changes MODIFY b INT NULL;

ALTER TABLE key_changes MODIFY b BIGINT NOT NULL;

ALTER TABLE key_changes RENAME INDEX u TO renamed;

ALTER TABLE key_changes RENAME KEY renamed TO `renamed again`;

ALTER TABLE key_changes CHANGE b bb BIGINT NOT NULL;

ALTER TABLE key_changes ADD CONSTRAINT named PRIMARY KEY (c);

ALTER TABLE key_changes MODIFY c BIGINT;

ALTER TABLE key_changes CHANGE c cc BIGINT AUTO_INCREMENT;

ALTER TABLE key_changes DROP COLUMN bb;

ALTER TABLE compound DROP PRIMARY KEY, DROP COLUMN c, ADD PRIMARY KEY (a);

ALTER TABLE inline_primary ADD COLUMN u INT UNIQUE, ADD COLUMN n INT NOT NULL UNIQUE KEY AFTER id;

ALTER TABLE inline_key DROP COLUMN id, ADD COLUMN uid BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY FIRST;

CREATE TABLE index_options (a INT, b INT, KEY k (a) KEY_BLOCK_SIZE = 8 COMMENT 'c', UNIQUE KEY u (b) COMMENT "it's", c TEXT, FULLTEXT INDEX f (c));

ALTER TABLE only_unique DROP INDEX c, ADD INDEX again (c);

ALTER TABLE only_unique MODIFY b INT;

ALTER TABLE names_collide DROP KEY a, ADD UNIQUE (a);

CREATE TABLE primary_later (id INT NOT NULL, code CHAR(2) NOT NULL, UNIQUE KEY code (code)) ENGINE InnoDB;

ALTER TABLE primary_later ADD PRIMARY KEY USING BTREE (id);

CREATE TABLE enum_key (k ENUM('a','b') NOT NULL, v INT, PRIMARY KEY (k, v));

CREATE TABLE binary_key (id BINARY(16) NOT NULL, PRIMARY KEY (id));

CREATE TABLE index_named_key (`key` INT, `index` INT, `primary` INT, KEY `key` (`key`), UNIQUE `primary_` (`primary`), INDEX `index` (`index`));

CREATE TABLE referred (id INT PRIMARY KEY, x INT NOT NULL UNIQUE, y INT NOT NULL, UNIQUE (x, y));

CREATE TABLE two_foreign (a INT, b INT, CONSTRAINT f1 FOREIGN KEY (a) REFERENCES referred (id), CONSTRAINT f2 FOREIGN KEY (a, b) REFERENCES referred (x, y));

ALTER TABLE two_foreign ADD UNIQUE (a, b), ADD c INT REFERENCES referred (id);

ALTER TABLE two_foreign RENAME INDEX c TO d, ADD e INT, ADD CONSTRAINT f3 FOREIGN KEY (e) REFERENCES referred (id);

ALTER TABLE two_foreign ADD KEY (c), ADD KEY (e);

ALTER TABLE two_foreign DROP FOREIGN KEY f3, DROP KEY e, ADD UNIQUE (e);

CREATE TABLE reindexed (a INT NOT NULL, b INT NOT NULL, UNIQUE v (b), UNIQUE u (a));

ALTER TABLE reindexed DROP INDEX v, ADD UNIQUE v (b);

ALTER TABLE reindexed DROP INDEX u, ADD UNIQUE u (a), ADD c INT;

CREATE TABLE primary_between (a INT, b INT, UNIQUE v (b), PRIMARY KEY (a, b), UNIQUE u (a));

ALTER TABLE primary_between DROP PRIMARY KEY;

CREATE TABLE required_later (a VARCHAR(9) NOT NULL, b INT, UNIQUE u (a(5)), UNIQUE v (b));

ALTER TABLE required_later MODIFY b INT NOT NULL;

ALTER TABLE required_later ADD c INT UNIQUE;

CREATE TABLE same_case (a INT, UNIQUE c (a));

CREATE TABLE SAME_CASE (b INT, d INT, UNIQUE c (b, d));

CREATE TABLE put_in_place (a INT, b ENUM('ab', 'c'), c DATETIME(3), d DECIMAL(20, 5), e VARCHAR(20), UNIQUE a (a), UNIQUE b (b), UNIQUE c (c), UNIQUE d (d), UNIQUE e (e)) CHARACTER SET latin1;

ALTER TABLE put_in_place DROP a, ADD a VARCHAR(30), DROP b, ADD b TEXT, DROP c, ADD c CHAR(30), DROP d, ADD d VARBINARY(30), DROP e, ADD e BLOB;

CREATE TABLE labels_to_text (a ENUM('ab', 'c'), b SET('ab', 'c'), UNIQUE a (a), UNIQUE b (b)) CHARACTER SET latin1;

ALTER TABLE labels_to_text MODIFY a VARCHAR(30), CHANGE b c VARCHAR(30);
