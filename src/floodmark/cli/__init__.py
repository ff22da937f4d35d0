"""The command line: commands, progress, output."""
