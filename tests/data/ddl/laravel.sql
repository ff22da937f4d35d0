create table `migrations` (`id` int unsigned not null auto_increment primary key, `migration` varchar(255) not null, `batch` int not null) default character set utf8mb4 collate 'utf8mb4_unicode_ci';

create table `users` (`id` bigint unsigned not null auto_increment primary key, `name` varchar(255) not null, `email` varchar(255) not null, `email_verified_at` timestamp null, `password` varchar(255) not null, `remember_token` varchar(100) null, `created_at` timestamp null, `updated_at` timestamp null) default character set utf8mb4 collate 'utf8mb4_unicode_ci';

alter table `users` add unique `users_email_unique`(`email`);

create table `password_resets` (`email` varchar(255) not null, `token` varchar(255) not null, `created_at` timestamp null) default character set utf8mb4 collate 'utf8mb4_unicode_ci' engine = InnoDB;

alter table `password_resets` add index `password_resets_email_index`(`email`);

create table `failed_jobs` (`id` bigint unsigned not null auto_increment primary key, `uuid` varchar(255) not null, `connection` text not null, `queue` text not null, `payload` longtext not null, `exception` longtext not null, `failed_at` timestamp not null default CURRENT_TIMESTAMP) default character set utf8mb4 collate 'utf8mb4_unicode_ci';

alter table `failed_jobs` add unique `failed_jobs_uuid_unique`(`uuid`);

alter table `users` add `avatar` varchar(255) null after `email`;

alter table `users` add `role` enum('admin', 'editor', 'guest') not null default 'guest' after `password`, add `settings` json null, add `balance` decimal(8, 2) not null default '0', add `rating` double(8, 2) null, add `active` tinyint(1) not null default '1';

alter table `users` modify `name` varchar(100) null;

alter table `users` modify column `role` varchar(20) not null default 'guest' comment 'was an enum';

alter table `users` change `avatar` `picture` varchar(191) null;

alter table `users` drop `picture`, drop `rating`;

alter table `users` drop index `users_email_unique`;

create table `flights` (`id` char(36) not null, `user_id` bigint unsigned not null, `departs` datetime(0) null, `gate` char(4) null, `seats` smallint unsigned not null default '0', `meal` mediumint null, `notes` mediumtext null, `code` tinyint unsigned null, `geo` point null, `area` geometry null, `mac` varchar(17) null, `ip` varchar(45) null, `year` year null, `data` blob null, primary key (`id`)) default character set utf8mb4 collate 'utf8mb4_unicode_ci';

alter table `flights` add constraint `flights_user_id_foreign` foreign key (`user_id`) references `users` (`id`) on delete cascade;

alter table `flights` drop foreign key `flights_user_id_foreign`;

alter table `flights` drop primary key, add primary key `flights_pk`(`id`, `user_id`);

alter table `flights` add `deleted_at` timestamp null;

alter table `flights` add `full` varchar(50) as (concat(gate, '-', code)) after `gate`, add `stored_full` varchar(50) as (upper(`code` + 1)) stored;

rename table `flights` to `trips`;

alter table `trips` add `first` int not null first;

alter table `trips` comment = 'trips';

create table `model_has_roles` (`role_id` bigint unsigned not null, `model_type` varchar(255) not null, `model_id` bigint unsigned not null) default character set utf8mb4 collate 'utf8mb4_unicode_ci';

alter table `model_has_roles` add index `model_has_roles_model_id_model_type_index`(`model_id`, `model_type`);

alter table `model_has_roles` add primary key `model_has_roles_primary`(`role_id`, `model_id`, `model_type`);

drop table if exists `password_resets`;
