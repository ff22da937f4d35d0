"""Counts where the source's types say little: ``python -m tests.support.loose_types [-v]``.

``dict[str, Any]`` should stand only where stored JSON is read or written, ``Any`` only where a library has no types.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "floodmark"


def signatures(tree: ast.AST) -> Iterator[tuple[int, ast.expr]]:
    """Yield the annotations of functions' parameters and results, and of the fields of classes, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = node.args
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
            for annotation in (*(one.annotation for one in every if one is not None), node.returns):
                if annotation is not None:
                    yield annotation.lineno, annotation
        elif isinstance(node, ast.ClassDef):
            for one in node.body:
                if isinstance(one, ast.AnnAssign):
                    yield one.lineno, one.annotation


def is_loose(node: ast.AST) -> bool:
    """Return whether a type is ``dict[str, Any]``."""
    return isinstance(node, ast.Subscript) and ast.unparse(node) == "dict[str, Any]"


def count(paths: Iterator[Path]) -> tuple[Counter[str], Counter[str]]:
    """Return how many signatures have ``dict[str, Any]``, and how often ``Any`` stands in a type, by module."""
    loose: Counter[str] = Counter()
    anything: Counter[str] = Counter()
    for path in paths:
        name = str(path.relative_to(SOURCE))
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for _, annotation in signatures(tree):
            loose[name] += any(is_loose(node) for node in ast.walk(annotation))
        anything[name] = sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(tree))
    return loose, anything


def main() -> None:
    """Print the counts; with ``-v`` by module."""
    loose, anything = count(SOURCE.rglob("*.py"))
    print(f"dict[str, Any] in signatures: {loose.total()}; Any: {anything.total()}")
    if "-v" in sys.argv[1:]:
        for name, number in sorted(anything.items(), key=lambda item: -item[1]):
            if number:
                print(f"{number:4} {loose[name]:4} {name}")


if __name__ == "__main__":
    main()
