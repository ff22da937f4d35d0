CREATE TABLE wp_posts (
	ID bigint(20) unsigned NOT NULL auto_increment,
	post_author bigint(20) unsigned NOT NULL default '0',
	post_content longtext NOT NULL,
	post_title text NOT NULL,
	post_status varchar(20) NOT NULL default 'publish',
	menu_order int(11) NOT NULL default '0',
	guid varchar(255) NOT NULL default '',
	PRIMARY KEY  (ID),
	KEY post_name (post_status(19)),
	KEY type_status_date (post_status,ID)
) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_ci;

CREATE TABLE wp_options (
	option_id bigint(20) unsigned NOT NULL auto_increment,
	option_name varchar(191) NOT NULL default '',
	option_value longtext NOT NULL,
	autoload varchar(20) NOT NULL default 'yes',
	PRIMARY KEY  (option_id),
	UNIQUE KEY option_name (option_name)
) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_ci;

ALTER TABLE wp_posts CHANGE COLUMN post_title post_title mediumtext NOT NULL;

ALTER TABLE wp_options ADD KEY autoload (autoload);

ALTER TABLE wp_posts CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;

CREATE TABLE `catalog_product_entity` (
  `entity_id` int UNSIGNED NOT NULL AUTO_INCREMENT COMMENT "Entity Id",
  `attribute_set_id` smallint UNSIGNED NOT NULL DEFAULT 0 COMMENT "Attribute Set ID",
  `sku` varchar(64) NULL COMMENT "SKU",
  `created_at` timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP COMMENT "Creation Time",
  `updated_at` timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP COMMENT "Update Time",
  CONSTRAINT PRIMARY KEY (`entity_id`),
  INDEX `CATALOG_PRODUCT_ENTITY_SKU` (`sku`)
) ENGINE=innodb DEFAULT CHARSET=utf8mb4 DEFAULT COLLATE=utf8mb4_general_ci COMMENT="Catalog Product Table";

ALTER TABLE `catalog_product_entity` MODIFY COLUMN `sku` varchar(128) NOT NULL COMMENT "SKU", ADD COLUMN `price` decimal(20, 6) UNSIGNED NULL COMMENT "Price";

CREATE TABLE `sessions` (
  `sid` VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'A session ID.',
  `hostname` VARCHAR(128) CHARACTER SET ascii NOT NULL DEFAULT '' COMMENT 'The IP address.',
  `timestamp` INT NOT NULL DEFAULT 0 COMMENT 'The Unix timestamp.',
  `session` LONGBLOB NULL DEFAULT NULL COMMENT 'The contents.',
  PRIMARY KEY (`sid`),
  INDEX `timestamp` (`timestamp`)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COMMENT 'Drupal''s session handlers.';

CREATE TABLE `mdl_course` (
    id BIGINT(10) NOT NULL auto_increment,
    category BIGINT(10) NOT NULL DEFAULT 0,
    fullname VARCHAR(254) NOT NULL DEFAULT '',
    summary LONGTEXT,
    visible TINYINT(1) NOT NULL DEFAULT 1,
    grade NUMERIC(10,5) NOT NULL DEFAULT 0,
CONSTRAINT  PRIMARY KEY (id)
, KEY mdl_cour_cat_ix (category)
)
 ENGINE = InnoDB
 DEFAULT CHARACTER SET utf8mb4
 DEFAULT COLLATE = utf8mb4_unicode_ci
 ROW_FORMAT=Dynamic
 COMMENT='Central course table';

ALTER TABLE mdl_course MODIFY COLUMN grade NUMERIC(10,5), ADD COLUMN visibleold TINYINT(1) NOT NULL DEFAULT 1 after visible;

DROP TABLE IF EXISTS `dumped`;

/*!40101 SET @saved_cs_client     = @@character_set_client */;

/*!50503 SET character_set_client = utf8mb4 */;

CREATE TABLE `dumped` (
  `id` int NOT NULL AUTO_INCREMENT,
  `c` varchar(10) CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT 'it''s',
  `d` datetime DEFAULT NULL,
  `e` int DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `k` (`c`,`e`)
) ENGINE=InnoDB AUTO_INCREMENT=3 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin /*!50900 STATS_PERSISTENT=1 */;

/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `dumped` DISABLE KEYS */;

/*!40000 ALTER TABLE `dumped` ENABLE KEYS */;

CREATE TABLE `accounts` (`id` INT UNSIGNED AUTO_INCREMENT NOT NULL, `api_key` LONGTEXT DEFAULT NULL COMMENT '(DC2Type:array)', `roles` JSON NOT NULL, `amount` NUMERIC(10, 2) NOT NULL, `is_on` TINYINT(1) DEFAULT 0 NOT NULL, `uuid` BINARY(16) NOT NULL COMMENT '(DC2Type:uuid)', `at` DATETIME NOT NULL COMMENT '(DC2Type:datetime_immutable)', UNIQUE INDEX UNIQ_CAC89EACD17F50A6 (`uuid`), INDEX IDX_1 (`is_on`), PRIMARY KEY(`id`)) DEFAULT CHARACTER SET utf8mb4 COLLATE `utf8mb4_unicode_ci` ENGINE = InnoDB;

ALTER TABLE accounts ADD parent_id INT UNSIGNED DEFAULT NULL, CHANGE roles roles LONGTEXT NOT NULL COMMENT '(DC2Type:json)', DROP api_key;

ALTER TABLE accounts ADD CONSTRAINT FK_CAC89EAC727ACA70 FOREIGN KEY (parent_id) REFERENCES accounts (id);

CREATE INDEX IDX_CAC89EAC727ACA70 ON accounts (parent_id);

CREATE TABLE `User` (
    `id` INTEGER NOT NULL AUTO_INCREMENT,
    `email` VARCHAR(191) NOT NULL,
    `role` ENUM('USER', 'ADMIN') NOT NULL DEFAULT 'USER',
    `createdAt` DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
    `big` BIGINT NULL,
    `bytes` LONGBLOB NULL,
    `flag` BOOLEAN NOT NULL DEFAULT false,
    `score` DOUBLE NOT NULL DEFAULT 0.5,
    `dec` DECIMAL(65, 30) NULL,

    UNIQUE INDEX `User_email_key`(`email`),
    PRIMARY KEY (`id`)
) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;

ALTER TABLE `User` ADD COLUMN `tenant` VARCHAR(191) NOT NULL DEFAULT 'main',
    MODIFY `role` ENUM('USER', 'ADMIN', 'OWNER') NOT NULL DEFAULT 'USER',
    DROP PRIMARY KEY,
    ADD PRIMARY KEY (`id`, `tenant`);

CREATE TABLE `outbox` (`id` CHAR(36) NOT NULL, `aggregatetype` VARCHAR(255) NOT NULL, `aggregateid` VARCHAR(255) NOT NULL, `type` VARCHAR(255) NOT NULL, `payload` JSON NOT NULL, PRIMARY KEY (`id`)) ENGINE=InnoDB;

CREATE TABLE `debezium_signal` (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32) NOT NULL, data VARCHAR(2048) NULL);

CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

CREATE TABLE account (
	id INTEGER NOT NULL AUTO_INCREMENT, 
	name VARCHAR(50) NOT NULL, 
	description NVARCHAR(200), 
	ratio NUMERIC(4, 2), 
	active BOOL NOT NULL DEFAULT true, 
	PRIMARY KEY (id), 
	CHECK (active IN (0, 1))
);

ALTER TABLE account ADD COLUMN last_transaction_date DATETIME;

ALTER TABLE account MODIFY name VARCHAR(60) NULL;

ALTER TABLE account CHANGE description info NVARCHAR(300) NULL;

CREATE UNIQUE INDEX ix_account_name ON account (name);
