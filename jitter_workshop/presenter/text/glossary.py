"""Explain the terms of a page, each in a sentence. The sentences come from assets/glossary.toml; docs/glossary.md and
docs/glossary-of-the-field.md are made from the same file."""

from __future__ import annotations

import functools
import re
import tomllib
from importlib import resources

from jitter_workshop.model.record import dataclass
from jitter_workshop.presenter.text.lines import Lines, small_title, wrap
from jitter_workshop.presenter.text.prose import styled
from jitter_workshop.presenter.text.styled import Text

TITLE = "WORDS ON THIS PAGE"
NONE = "This page uses no word of the glossary. docs/glossary.md has the words of this project, and links to the rest."


@dataclass(frozen=True, slots=True)
class Term:
    """Hold one term of the glossary. ``meaning``: a sentence. ``unlike``: what the term does not mean, or "".
    ``also``: the words that a search of a page for the term looks for. It is () for a term that is too common to
    search for. ``of_field``: the field defines the term (the kernel, the processor, statistics), and not this project.
    """

    term: str
    meaning: str
    section: str
    unlike: str = ""
    also: tuple[str, ...] = ()
    of_field: bool = False


@functools.cache
def terms() -> tuple[Term, ...]:
    """Return all terms in the order of the file."""
    text = resources.files("jitter_workshop.assets").joinpath("glossary.toml").read_text("utf-8")
    return tuple(
        Term(
            one["term"],
            one["meaning"],
            section["title"],
            one.get("not", ""),
            tuple(one.get("also", [one["term"]])),
            section.get("field", False),
        )
        for section in tomllib.loads(text)["section"]
        for one in section["term"]
    )


def index_of_term(term: Term, text: str) -> int | None:
    """Return the index of a term's first occurrence in a text, or None. The text must have no double blanks."""
    places = [hit.start() for form in term.also if (hit := _pattern(form).search(text)) is not None]
    return min(places, default=None)


@functools.cache
def _pattern(form: str) -> re.Pattern[str]:
    """Return a pattern that finds a word or its plural. An abbreviation is found only in capitals, and nothing is found
    inside a path or a file's name."""
    flags = re.NOFLAG if form.isupper() else re.IGNORECASE
    return re.compile(rf"(?<![\w/.-]){re.escape(form)}(?:s|es)?(?![\w/]|\.\d)", flags)


def found(text: str) -> tuple[Term, ...]:
    """Return the terms of a page in the order of their first occurrence."""
    flat = " ".join(text.split())
    placed = [(at, one) for one in terms() if (at := index_of_term(one, flat)) is not None]
    return tuple(one for _, one in sorted(placed, key=lambda pair: pair[0]))


def fitting_term_lines(text: str, width: int, rows: int) -> Lines:
    """Return the terms of a page in quiet colours, each with its meaning: as many whole ones as fit into ``rows``."""
    lines: Lines = []
    for one in found(text):
        told = wrap(Text.assemble((f"{one.term}: ", "cool"), (styled(one.meaning).plain, "dim")), width, "", "  ")
        if len(lines) + len(told) <= rows:
            lines += told
    return lines


def term_lines(text: str, width: int) -> Lines:
    """Return the terms of a page, each with its meaning."""
    shown = found(text)
    lines: Lines = [small_title(TITLE)]
    if not shown:
        return [*lines, *wrap(Text(NONE, "dim"), width)]
    for one in shown:
        lines += wrap(Text.assemble((f"{one.term}: ", "bold cool"), styled(one.meaning)), width, "  ", "    ")
    return lines
