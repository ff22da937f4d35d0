CREATE TABLE `users` (`id` int unsigned NOT NULL AUTO_INCREMENT, `name` varchar(50) DEFAULT NULL, `email` varchar(100) NOT NULL, PRIMARY KEY (`id`), UNIQUE KEY `email` (`email`)) ENGINE=InnoDB DEFAULT CHARSET=latin1;

create /* gh-ost */ table `online_tools`.`_users_ghc` (
			id bigint unsigned auto_increment,
			last_update timestamp not null DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
			hint varchar(64) charset ascii not null,
			value varchar(4096) charset ascii not null,
			primary key(id),
			unique key hint_uidx(hint)
		) auto_increment=256 comment='gh-ost';

create /* gh-ost */ table `online_tools`.`_users_gho` like `online_tools`.`users`;

alter /* gh-ost */ table `online_tools`.`_users_gho` ADD COLUMN phone VARCHAR(20) NOT NULL DEFAULT '', MODIFY name VARCHAR(100) CHARACTER SET utf8mb4;

alter /* gh-ost */ table `online_tools`.`_users_gho` AUTO_INCREMENT=1000;

create /* gh-ost */ table `online_tools`.`_users_del` (
			id int auto_increment primary key
		) engine=InnoDB comment='ghost-cut-over-sentry';

drop /* gh-ost */ table if exists `online_tools`.`_users_del`;

rename /* gh-ost */ table `online_tools`.`users` to `online_tools`.`_users_del`, `online_tools`.`_users_gho` to `online_tools`.`users`;

drop /* gh-ost */ table if exists `online_tools`.`_users_ghc`;

drop /* gh-ost */ table if exists `online_tools`.`_users_del`;

CREATE TABLE `orders` (`id` bigint NOT NULL AUTO_INCREMENT, `user_id` int unsigned NOT NULL, `total` decimal(8,2) DEFAULT '0.00', `note` text, PRIMARY KEY (`id`), KEY `user_id` (`user_id`), CONSTRAINT `orders_ibfk_1` FOREIGN KEY (`user_id`) REFERENCES `users` (`id`)) ENGINE=InnoDB;

CREATE TABLE `online_tools`.`_orders_new` (
  `id` bigint NOT NULL AUTO_INCREMENT,
  `user_id` int unsigned NOT NULL,
  `total` decimal(8,2) DEFAULT '0.00',
  `note` text,
  PRIMARY KEY (`id`),
  KEY `user_id` (`user_id`),
  CONSTRAINT `_orders_ibfk_1` FOREIGN KEY (`user_id`) REFERENCES `users` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

ALTER TABLE `online_tools`.`_orders_new` add column shipped datetime(3) null after total, drop column note;

RENAME TABLE `online_tools`.`orders` TO `online_tools`.`_orders_old`, `online_tools`.`_orders_new` TO `online_tools`.`orders`;

DROP TABLE IF EXISTS `online_tools`.`_orders_old`;

CREATE TABLE IF NOT EXISTS `online_tools`.`checksums` (
   db             CHAR(64)     NOT NULL,
   tbl            CHAR(64)     NOT NULL,
   chunk          INT          NOT NULL,
   chunk_time     FLOAT            NULL,
   chunk_index    VARCHAR(200)     NULL,
   lower_boundary TEXT             NULL,
   upper_boundary TEXT             NULL,
   this_crc       CHAR(40)     NOT NULL,
   this_cnt       INT          NOT NULL,
   master_crc     CHAR(40)         NULL,
   master_cnt     INT              NULL,
   ts             TIMESTAMP    NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
   PRIMARY KEY (db, tbl, chunk),
   INDEX ts_db_tbl (ts, db, tbl)
) ENGINE=InnoDB DEFAULT CHARSET=utf8;

CREATE TABLE `__lhmn_users` (`id` int(11) NOT NULL AUTO_INCREMENT, `name` varchar(255) DEFAULT NULL, PRIMARY KEY (`id`)) ENGINE=InnoDB;

ALTER TABLE `__lhmn_users` ADD COLUMN `flag` tinyint(1) DEFAULT '0';

RENAME TABLE `users` TO `lhma_2026_users`, `__lhmn_users` TO `users`;

/* ApplicationName=DBeaver 23.0 - Metadata */ ALTER TABLE online_tools.users ADD column1 varchar(100) NULL;

ALTER TABLE `online_tools`.`users` 
ADD COLUMN `workbench` VARCHAR(45) NULL AFTER `name`,
CHANGE COLUMN `column1` `column1` VARCHAR(200) CHARACTER SET 'utf8mb4' COLLATE 'utf8mb4_bin' NOT NULL ,
ADD UNIQUE INDEX `workbench_UNIQUE` (`workbench` ASC);

CREATE TABLE `online_tools`.`new_table` (
  `idnew_table` INT NOT NULL AUTO_INCREMENT,
  `new_tablecol` VARCHAR(45) NULL,
  PRIMARY KEY (`idnew_table`));

ALTER TABLE `new_table` CHANGE `new_tablecol` `php_my_admin` VARCHAR(45) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NULL DEFAULT NULL;

ALTER TABLE `new_table` ADD `after_it` INT NOT NULL AFTER `php_my_admin`, DROP PRIMARY KEY, ADD PRIMARY KEY (`idnew_table`);

ALTER TABLE `new_table` MODIFY `idnew_table` int(11) NOT NULL AUTO_INCREMENT, AUTO_INCREMENT=5;
