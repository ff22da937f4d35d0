"""Prints tables, texts and numbers for people; shared by the commands."""

from __future__ import annotations

from rich.console import Console

FILE_WIDTH = 120


def output_console() -> Console:
    """Return a console for standard output; in a file or a pipe its lines have a fixed width."""
    console = Console()
    if not console.is_terminal:
        console.width = FILE_WIDTH
    return console


def printable(text: str) -> str:
    """Return a text on one line, without terminal control characters: names and signals can hold anything."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def human_bytes(count: float) -> str:
    """Return a number of bytes for people, in binary units."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def human_time(seconds: float) -> str:
    """Return a duration for people, in its two greatest units."""
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    if not hours:
        return f"{minutes} min {rest} s"
    return f"{hours} h {minutes} min" if hours < 24 else f"{hours // 24} d {hours % 24} h"
