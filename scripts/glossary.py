"""Make the tables of docs/glossary.md from assets/glossary.toml: ``python scripts/glossary.py [--write]``.

Exit code 1: the document is not the one of the file.
"""

from __future__ import annotations

import sys
from itertools import groupby

from generated import REPOSITORY, keep

from jitter_workshop.presenter.text.glossary import terms

DOCUMENT = REPOSITORY / "docs" / "glossary.md"
BEGIN = "<!-- words: assets/glossary.toml, by python scripts/glossary.py --write -->"


def tables() -> str:
    """Return each section of the glossary as a Markdown table."""
    lines: list[str] = []
    for title, members in groupby(terms(), key=lambda one: one.section):
        lines += ["", f"## {title}", "", "| term | meaning | not |", "|---|---|---|"]
        lines += [f"| {one.term} | {one.meaning} | {one.unlike or '–'} |" for one in members]
    return "\n".join(lines)


def main() -> int:
    text = DOCUMENT.read_text()
    return keep(DOCUMENT, f"{text.partition(BEGIN)[0]}{BEGIN}\n{tables()}\n", "not the words of assets/glossary.toml")


if __name__ == "__main__":
    sys.exit(main())
