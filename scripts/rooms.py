"""Make the map of docs/architecture.md from the packages' own docstrings: ``python scripts/rooms.py [--write]``.

Exit code 1: the map in the document is not the one of the code.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from generated import REPOSITORY, keep

DOCUMENT = REPOSITORY / "docs" / "architecture.md"
BEGIN, END = "<!-- rooms: python scripts/rooms.py --write -->", "<!-- end of rooms -->"
ORDER = [
    "commands",
    "tui",
    "plain",
    "presenter",
    "flow",
    "chart",
    "report",
    "course",
    "classroom",
    "session",
    "samples",
    "agent",
    "tuning",
    "bench",
    "practice",
    "evidence",
    "host",
    "stats",
    "model",
]


def purpose(folder: Path) -> str:
    """Return the first paragraph of a package's docstring. Raise SystemExit if that is not exactly one sentence."""
    first = (ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or "").partition("\n\n")[0]
    said = " ".join(first.split())
    if not said.endswith(".") or ". " in said:
        raise SystemExit(f"scripts/rooms.py: the purpose of {folder.name} is not one sentence: {said!r}")
    return said


def rooms() -> str:
    """Return the map as a Markdown table: each room, and below it its packages."""
    top = REPOSITORY / "jitter_workshop"
    found = {path.parent.name for path in top.glob("*/__init__.py") if not path.parent.is_symlink()}
    if set(ORDER) != found:
        raise SystemExit(f"scripts/rooms.py: rooms without an order: {sorted(found ^ set(ORDER))}")
    lines = ["| room | purpose |", "|---|---|"]
    for name in ORDER:
        lines.append(f"| **{name}** | {purpose(top / name)} |")
        inner = sorted(path.parent for path in (top / name).rglob("*/__init__.py") if path.parent != top / name)
        lines += [f"| &nbsp;&nbsp;{one.relative_to(top / name).as_posix()} | {purpose(one)} |" for one in inner]
    return "\n".join(lines)


def main() -> int:
    text = DOCUMENT.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return keep(DOCUMENT, f"{before}{BEGIN}\n{rooms()}\n{END}{after}", "the map is not that of the code")


if __name__ == "__main__":
    sys.exit(main())
