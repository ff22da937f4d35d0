CREATE TABLE `schema_migrations` (`version` varchar(255) NOT NULL PRIMARY KEY);

CREATE TABLE `ar_internal_metadata` (`key` varchar(255) NOT NULL PRIMARY KEY, `value` varchar(255), `created_at` datetime(6) NOT NULL, `updated_at` datetime(6) NOT NULL);

CREATE TABLE `users` (`id` bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, `email` varchar(255) DEFAULT '' NOT NULL, `encrypted_password` varchar(255) DEFAULT '' NOT NULL, `reset_password_token` varchar(255), `reset_password_sent_at` datetime(6), `admin` tinyint(1) DEFAULT FALSE NOT NULL, `sign_in_count` int DEFAULT 0, `created_at` datetime(6) NOT NULL, `updated_at` datetime(6) NOT NULL, UNIQUE INDEX `index_users_on_email` (`email`), UNIQUE INDEX `index_users_on_reset_password_token` (`reset_password_token`));

CREATE TABLE `posts` (`id` bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, `user_id` bigint NOT NULL, `title` varchar(255), `body` text, `published` tinyint(1), `price` decimal(10,2), INDEX `index_posts_on_user_id`  (`user_id`), CONSTRAINT `fk_rails_5b5ddfd518` FOREIGN KEY (`user_id`) REFERENCES `users` (`id`)) ENGINE=InnoDB;

ALTER TABLE `posts` ADD `slug` varchar(255);

CREATE UNIQUE INDEX `index_posts_on_slug` ON `posts` (`slug`);

CREATE INDEX `index_posts_on_user_id_and_title` ON `posts` (`user_id`, `title`(50));

ALTER TABLE `posts` CHANGE `title` `title` varchar(500) DEFAULT NULL;

ALTER TABLE `posts` CHANGE `title` `headline` varchar(500) DEFAULT NULL;

ALTER TABLE `posts` ADD `created_at` datetime(6) NOT NULL, ADD `updated_at` datetime(6) NOT NULL;

ALTER TABLE `posts` MODIFY `body` mediumtext;

ALTER TABLE `posts` CHANGE `published` `published` tinyint(1) DEFAULT 0 NOT NULL;

ALTER TABLE `posts` ALTER COLUMN `price` SET DEFAULT 9.99;

ALTER TABLE `posts` ALTER `price` DROP DEFAULT;

CREATE TABLE `posts_tags` (`post_id` bigint NOT NULL, `tag_id` bigint NOT NULL);

CREATE UNIQUE INDEX `index_posts_tags` ON `posts_tags` (`post_id`, `tag_id`);

ALTER TABLE `posts_tags` ADD CONSTRAINT `fk_rails_tags`
FOREIGN KEY (`post_id`)
  REFERENCES `posts` (`id`)
 ON DELETE CASCADE;

DROP INDEX `index_posts_on_slug` ON `posts`;

ALTER TABLE `posts` DROP COLUMN `slug`;

RENAME TABLE `posts` TO `articles`;

ALTER TABLE `articles` RENAME INDEX `index_posts_on_user_id` TO `index_articles_on_user_id`;

CREATE TABLE `events` (`id` char(36) NOT NULL, `payload` json, `kind` enum('click','view') DEFAULT 'view', `blob_data` longblob, `ip` varbinary(16), `lat` decimal(10,6), `score` float(24), PRIMARY KEY (`id`)) CHARSET=utf8mb4 COLLATE=utf8mb4_bin COMMENT='it''s events';

ALTER TABLE `events` ADD COLUMN `payload_kind` varchar(20) GENERATED ALWAYS AS (json_unquote(json_extract(`payload`,'$.kind'))) VIRTUAL;

ALTER TABLE `events` COMMENT 'changed';

CREATE TABLE `uuids` (`id` binary(16) NOT NULL PRIMARY KEY, `position` int unsigned, `big` bigint(20) unsigned zerofill);

ALTER TABLE `users` DROP INDEX `index_users_on_reset_password_token`, DROP COLUMN `reset_password_token`, DROP COLUMN `reset_password_sent_at`;

DROP TABLE IF EXISTS `posts_tags` CASCADE;
