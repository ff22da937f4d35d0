CREATE TABLE `django_migrations` (`id` bigint AUTO_INCREMENT NOT NULL PRIMARY KEY, `app` varchar(255) NOT NULL, `name` varchar(255) NOT NULL, `applied` datetime(6) NOT NULL);

CREATE TABLE `auth_permission` (`id` integer AUTO_INCREMENT NOT NULL PRIMARY KEY, `name` varchar(50) NOT NULL, `content_type_id` integer NOT NULL, `codename` varchar(100) NOT NULL);

CREATE TABLE `auth_user` (`id` integer AUTO_INCREMENT NOT NULL PRIMARY KEY, `password` varchar(128) NOT NULL, `last_login` datetime(6) NULL, `is_superuser` bool NOT NULL, `username` varchar(30) NOT NULL UNIQUE, `first_name` varchar(30) NOT NULL, `email` varchar(75) NOT NULL, `is_staff` bool NOT NULL, `date_joined` datetime(6) NOT NULL);

CREATE TABLE `auth_user_groups` (`id` bigint AUTO_INCREMENT NOT NULL PRIMARY KEY, `user_id` integer NOT NULL, `group_id` integer NOT NULL);

ALTER TABLE `auth_user_groups` ADD CONSTRAINT `auth_user_groups_user_id_group_id_94350c0c_uniq` UNIQUE (`user_id`, `group_id`);

ALTER TABLE `auth_user_groups` ADD CONSTRAINT `auth_user_groups_user_id_6a12ed8b_fk_auth_user_id` FOREIGN KEY (`user_id`) REFERENCES `auth_user` (`id`);

ALTER TABLE `auth_permission` ADD CONSTRAINT `auth_permission_content_type_id_codename_01ab375a_uniq` UNIQUE (`content_type_id`, `codename`);

ALTER TABLE `auth_permission` MODIFY `name` varchar(255) NOT NULL;

ALTER TABLE `auth_user` MODIFY `last_login` datetime(6) NULL;

ALTER TABLE `auth_user` MODIFY `username` varchar(150) NOT NULL;

ALTER TABLE `auth_user` ADD COLUMN `phone` varchar(20) DEFAULT '' NOT NULL;

ALTER TABLE `auth_user` ALTER COLUMN `phone` DROP DEFAULT;

ALTER TABLE `auth_user` ADD COLUMN `score` double precision NULL, ADD COLUMN `rank` integer UNSIGNED DEFAULT 0 NOT NULL CHECK (`rank` >= 0);

CREATE TABLE `django_content_type` (`id` integer AUTO_INCREMENT NOT NULL PRIMARY KEY, `name` varchar(100) NOT NULL, `app_label` varchar(100) NOT NULL, `model` varchar(100) NOT NULL);

ALTER TABLE `django_content_type` MODIFY `name` varchar(100) NULL;

ALTER TABLE `django_content_type` DROP COLUMN `name`;

CREATE TABLE `django_session` (`session_key` varchar(40) NOT NULL PRIMARY KEY, `session_data` longtext NOT NULL, `expire_date` datetime(6) NOT NULL);

CREATE INDEX `django_session_expire_date_a5c62663` ON `django_session` (`expire_date`);

CREATE TABLE `django_admin_log` (`id` integer AUTO_INCREMENT NOT NULL PRIMARY KEY, `action_time` datetime(6) NOT NULL, `object_id` longtext NULL, `object_repr` varchar(200) NOT NULL, `action_flag` smallint UNSIGNED NOT NULL CHECK (`action_flag` >= 0), `change_message` longtext NOT NULL, `user_id` integer NOT NULL);

CREATE TABLE `shop_product` (`id` bigint AUTO_INCREMENT NOT NULL PRIMARY KEY, `uuid` char(32) NOT NULL UNIQUE, `sku` varchar(64) NOT NULL, `weight` numeric(8, 3) NULL, `attrs` json NOT NULL, `image` varchar(100) NOT NULL, `duration` bigint NOT NULL, `slot` time(6) NULL, `day` date NULL, `address` char(39) NULL, `raw` longblob NOT NULL, `active` bool DEFAULT true NOT NULL);

ALTER TABLE `shop_product` RENAME COLUMN `sku` TO `stock_unit`;

ALTER TABLE `shop_product` CHANGE `weight` `mass` numeric(8, 3) NULL;

RENAME TABLE `shop_product` TO `shop_item`;

ALTER TABLE `shop_item` ADD COLUMN `price` numeric(12, 2) DEFAULT 0.00 NOT NULL;

ALTER TABLE `shop_item` DROP INDEX `uuid`;

ALTER TABLE `shop_item` ADD CONSTRAINT `price_positive` CHECK (`price` > 0);

ALTER TABLE `shop_item` MODIFY `id` integer AUTO_INCREMENT NOT NULL;

CREATE FULLTEXT INDEX `shop_item_image` ON `shop_item` (`image`);

DROP TABLE `django_admin_log` CASCADE;
