CREATE TABLE `java`.`flyway_schema_history` (
    `installed_rank` INT NOT NULL,
    `version` VARCHAR(50),
    `description` VARCHAR(200) NOT NULL,
    `type` VARCHAR(20) NOT NULL,
    `script` VARCHAR(1000) NOT NULL,
    `checksum` INT,
    `installed_by` VARCHAR(100) NOT NULL,
    `installed_on` TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    `execution_time` INT NOT NULL,
    `success` BOOL NOT NULL,
    CONSTRAINT `flyway_schema_history_pk` PRIMARY KEY (`installed_rank`)
) ENGINE=InnoDB AS SELECT 1 as "installed_rank", '1' as "version", '<< Flyway Baseline >>' as "description", 'BASELINE' as "type", 'x' as "script", NULL as "checksum", 'me' as "installed_by", CURRENT_TIMESTAMP as "installed_on", 0 as "execution_time", TRUE as "success";

CREATE INDEX `flyway_schema_history_s_idx` ON `java`.`flyway_schema_history` (`success`);

CREATE TABLE DATABASECHANGELOGLOCK (ID INT NOT NULL, `LOCKED` BIT(1) NOT NULL, LOCKGRANTED datetime NULL, LOCKEDBY VARCHAR(255) NULL, CONSTRAINT PK_DATABASECHANGELOGLOCK PRIMARY KEY (ID));

CREATE TABLE DATABASECHANGELOG (ID VARCHAR(255) NOT NULL, AUTHOR VARCHAR(255) NOT NULL, FILENAME VARCHAR(255) NOT NULL, DATEEXECUTED datetime NOT NULL, ORDEREXECUTED INT NOT NULL, EXECTYPE VARCHAR(10) NOT NULL, MD5SUM VARCHAR(35) NULL, `DESCRIPTION` VARCHAR(255) NULL, COMMENTS VARCHAR(255) NULL, TAG VARCHAR(255) NULL, LIQUIBASE VARCHAR(20) NULL);

ALTER TABLE DATABASECHANGELOG ADD CONTEXTS VARCHAR(255) NULL, ADD LABELS VARCHAR(255) NULL;

CREATE TABLE java.person (id BIGINT AUTO_INCREMENT NOT NULL, firstname VARCHAR(50) NULL, lastname VARCHAR(50) NOT NULL, state CHAR(2) NULL, created timestamp DEFAULT NOW() NULL, CONSTRAINT PK_PERSON PRIMARY KEY (id), UNIQUE (lastname));

ALTER TABLE java.person ADD username VARCHAR(8) NULL;

ALTER TABLE java.person MODIFY state VARCHAR(30) DEFAULT 'none' NOT NULL;

ALTER TABLE java.person CHANGE firstname first_name VARCHAR(50) NULL;

ALTER TABLE java.person ADD CONSTRAINT uq_username UNIQUE (username);

ALTER TABLE java.person DROP KEY uq_username;

ALTER TABLE java.person ALTER state SET DEFAULT 'CA';

ALTER TABLE java.person ALTER state DROP DEFAULT;

ALTER TABLE java.person DROP COLUMN username;

ALTER TABLE java.person COMMENT = 'people';

ALTER TABLE java.person MODIFY first_name VARCHAR(50) NOT NULL COMMENT 'given name';

CREATE TABLE java.address (id INT NOT NULL, person_id BIGINT NOT NULL, street TINYTEXT NULL, geo DOUBLE(10, 6) NULL, active BIT DEFAULT 1 NULL, raw BLOB NULL);

ALTER TABLE java.address ADD PRIMARY KEY (id);

ALTER TABLE java.address ADD CONSTRAINT fk_address_person FOREIGN KEY (person_id) REFERENCES java.person (id) ON UPDATE RESTRICT ON DELETE CASCADE;

ALTER TABLE java.address DROP FOREIGN KEY fk_address_person;

ALTER TABLE java.address RENAME java.addresses;

ALTER TABLE java.addresses MODIFY id INT AUTO_INCREMENT;

ALTER TABLE java.addresses AUTO_INCREMENT = 1000;

create table hibernate_sequence (next_val bigint) engine=InnoDB;

create table customer (id bigint not null auto_increment, active bit not null, balance decimal(19,2), birth date, created_at datetime(6), credit float(53), data longblob, email varchar(255) not null, kind tinyint check (kind between 0 and 3), rate float(23), notes tinytext, status enum ('ACTIVE','INACTIVE'), uid binary(16), primary key (id)) engine=InnoDB;

alter table customer add constraint UK_email unique (email);

create table customer_tags (customer_id bigint not null, tag varchar(255));

alter table customer_tags add constraint FK_tags foreign key (customer_id) references customer (id);

alter table customer drop column notes, drop column rate;

alter table customer modify column email varchar(320) not null, modify column status varchar(20);

create table orders_seq (next_val bigint) engine=InnoDB comment='sequence';

drop table if exists hibernate_sequence;

CREATE TABLE QRTZ_JOB_DETAILS(
SCHED_NAME VARCHAR(120) NOT NULL,
JOB_NAME VARCHAR(190) NOT NULL,
JOB_GROUP VARCHAR(190) NOT NULL,
DESCRIPTION VARCHAR(250) NULL,
IS_DURABLE VARCHAR(1) NOT NULL,
JOB_DATA BLOB NULL,
PRIMARY KEY (SCHED_NAME,JOB_NAME,JOB_GROUP))
ENGINE=InnoDB;

CREATE TABLE QRTZ_TRIGGERS (
SCHED_NAME VARCHAR(120) NOT NULL,
TRIGGER_NAME VARCHAR(190) NOT NULL,
JOB_NAME VARCHAR(190) NOT NULL,
JOB_GROUP VARCHAR(190) NOT NULL,
NEXT_FIRE_TIME BIGINT(13) NULL,
PRIORITY INTEGER NULL,
MISFIRE_INSTR SMALLINT(2) NULL,
PRIMARY KEY (SCHED_NAME,TRIGGER_NAME),
INDEX (SCHED_NAME, JOB_NAME),
FOREIGN KEY (SCHED_NAME,JOB_NAME,JOB_GROUP)
REFERENCES QRTZ_JOB_DETAILS(SCHED_NAME,JOB_NAME,JOB_GROUP))
ENGINE=InnoDB;

CREATE INDEX IDX_QRTZ_T_J ON QRTZ_TRIGGERS(SCHED_NAME,JOB_NAME,JOB_GROUP);
