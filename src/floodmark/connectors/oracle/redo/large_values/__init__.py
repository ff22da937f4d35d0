"""Statements about values that LogMiner shows apart from their rows."""
