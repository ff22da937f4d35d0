"""Codecs of dates, times and intervals."""
