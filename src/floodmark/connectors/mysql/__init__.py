"""The connector for MySQL and MariaDB."""
