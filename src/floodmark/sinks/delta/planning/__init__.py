"""What a micro-batch makes of a table: what it adds, what that replaces, and which values it needs of the target."""
