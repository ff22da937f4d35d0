CREATE TABLE watched (id INT PRIMARY KEY, v INT);

CREATE VIEW watched_view AS SELECT id, v AS vv FROM watched;

CREATE OR REPLACE ALGORITHM=MERGE DEFINER=CURRENT_USER SQL SECURITY INVOKER VIEW watched_view AS SELECT * FROM watched;

ALTER VIEW watched_view AS SELECT id FROM watched;

RENAME TABLE watched_view TO renamed_view;

DROP VIEW renamed_view;

CREATE TRIGGER watched_bi BEFORE INSERT ON watched FOR EACH ROW SET NEW.v = NEW.v + 1;

DROP TRIGGER watched_bi;

CREATE PROCEDURE make_table() BEGIN CREATE TABLE made_inside (a INT); ALTER TABLE made_inside ADD b INT; END;

CALL make_table();

DROP PROCEDURE make_table;

CREATE FUNCTION twice(x INT) RETURNS INT DETERMINISTIC NO SQL RETURN x * 2;

DROP FUNCTION IF EXISTS twice;

CREATE EVENT cleaning ON SCHEDULE EVERY 1 DAY DO DELETE FROM watched;

ALTER EVENT cleaning DISABLE;

DROP EVENT cleaning;

CREATE USER 'somebody'@'%' IDENTIFIED BY 'secret-1';

GRANT SELECT ON others.* TO 'somebody'@'%';

ALTER USER 'somebody'@'%' ACCOUNT LOCK;

RENAME USER 'somebody'@'%' TO 'another'@'%';

REVOKE SELECT ON others.* FROM 'another'@'%';

DROP USER 'another'@'%';

CREATE ROLE readers;

DROP ROLE readers;

ANALYZE TABLE watched;

OPTIMIZE TABLE watched;

CHECK TABLE watched;

REPAIR TABLE watched;

FLUSH TABLES;

FLUSH PRIVILEGES;

INSERT INTO watched VALUES (1, 1);

UPDATE watched SET v = 5;

DELETE FROM watched;

CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (USER 'x', HOST 'y', DATABASE 'z');

DROP SERVER s;

LOCK TABLES watched WRITE;

ALTER TABLE watched ADD COLUMN under_lock INT;

UNLOCK TABLES;

BEGIN;

CREATE TABLE ends_transaction (a INT);

COMMIT;
