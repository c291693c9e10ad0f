"""Make the tables of docs/glossary.md and docs/glossary-of-the-field.md from assets/glossary.toml:
``python scripts/glossary.py [--write]``.

Exit code 1: a document is not the one of the file.
"""

from __future__ import annotations

import sys
from itertools import groupby

from generated import REPOSITORY, keep

from jitter_workshop.presenter.text.glossary import terms

DOCUMENTS = {False: REPOSITORY / "docs" / "glossary.md", True: REPOSITORY / "docs" / "glossary-of-the-field.md"}
"""The documents, by ``Term.of_field``."""

BEGIN = "<!-- words: assets/glossary.toml, by python scripts/glossary.py --write -->"


def tables(of_field: bool) -> str:
    """Return each section of one document as a Markdown table."""
    lines: list[str] = []
    chosen = (one for one in terms() if one.of_field == of_field)
    for title, members in groupby(chosen, key=lambda one: one.section):
        lines += ["", f"## {title}", "", "| term | meaning | not |", "|---|---|---|"]
        lines += [f"| {one.term} | {one.meaning} | {one.unlike or '–'} |" for one in members]
    return "\n".join(lines)


def main() -> int:
    codes = []
    for of_field, document in DOCUMENTS.items():
        made = f"{document.read_text().partition(BEGIN)[0]}{BEGIN}\n{tables(of_field)}\n"
        codes.append(keep(document, made, "not the words of assets/glossary.toml"))
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
