"""Plain English where a machine can tell: ``python scripts/prose.py [--list] [FOLDER…]``.

A docstring begins with what the code does, not with a question word, and programs are not called somebody. Counts by
room may only fall: the limits stand in pyproject.toml, ``[tool.prose]``. Exit code 1: a room has more than its limit.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
QUESTION = re.compile(r"(What|Whether|Who|Whom|Whose|Where|How|Why|Which)\b")
PEOPLE = re.compile(r"(?<!`)\b(nobody|whoever|whatever of|somebody's|nobody's|anybody's|what of it)\b", re.IGNORECASE)


def findings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and reason for each docstring and each text of a Python file, or each line of a document."""
    text = path.read_text()
    if path.suffix != ".py":
        for number, line in enumerate(text.splitlines(), start=1):
            if found := PEOPLE.search(line):
                yield number, f"'{found[0]}'"
        return
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            said = ast.get_docstring(node)
            if said and (found := QUESTION.match(said)):
                yield getattr(node, "lineno", 1), f"a docstring begins with '{found[0]}'"
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and (found := PEOPLE.search(node.value)):
            yield node.lineno, f"'{found[0]}'"


def room_of(path: Path) -> str:
    """Return the folder below the repository or the package that a file belongs to."""
    parts = path.relative_to(REPOSITORY).parts
    return "/".join(parts[:2]) if len(parts) > 2 and parts[0] == "jitter_workshop" else parts[0]


def main() -> int:
    listed = "--list" in sys.argv
    wanted = [REPOSITORY / name for name in sys.argv[1:] if not name.startswith("--")]
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["prose"]
    limits: dict[str, int] = settings["limits"]
    counts: Counter[str] = Counter()
    for top in wanted or [REPOSITORY / name for name in settings["folders"]]:
        files = [top] if top.is_file() else sorted(p for p in top.rglob("*") if p.suffix in (".py", ".md"))
        for path in files:
            for line, reason in findings(path):
                counts[room_of(path)] += 1
                if listed:
                    print(f"{path.relative_to(REPOSITORY)}:{line}: {reason}")
    worse = {room: number for room, number in counts.items() if number > limits.get(room, 0)}
    for room, number in sorted(worse.items()):
        print(f"prose: {room} has {number} where {limits.get(room, 0)} are the limit; --list shows them")
    for room, limit in sorted(limits.items()):
        if not wanted and counts[room] < limit:
            print(f"prose: {room} is down to {counts[room]}: put that into pyproject.toml, where {limit} is written")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
