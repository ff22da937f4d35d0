"""Rows of MySQL and MariaDB, from the log or from tables, and what makes events of them."""
