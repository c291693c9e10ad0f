"""Write the man page of the command line (man(7)) from a list of all verbs (``surface``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jitter_workshop.commands.common.base import PROGRAM
from jitter_workshop.commands.common.surface import Option, Verb
from jitter_workshop.model.text import cleaned_sentence

LINE = "where latency jitter comes from on this Linux host, and how to remove it"
ENDS = (
    ("0", "done"),
    ("1", "done with a finding"),
    ("2", "not done; one line on standard error gives the reason and the remedy"),
    ("129, 130, 143", "ended by HUP, INT or TERM"),
)
"""Exit code → its meaning, for every verb."""
FILES = (
    ("~/.local/state/jitter-workshop/sessions", "sessions with their runs, proofs and traces (XDG_STATE_HOME)"),
    ("~/.config/jitter-workshop/config.toml", "preferences (XDG_CONFIG_HOME)"),
    ("~/.cache/jitter-workshop", "unpacked recordings, and practice machines (XDG_CACHE_HOME)"),
)


def man_page(verbs: Sequence[Verb], version: str) -> str:
    """Return the man page in roff format. ``verbs``: the workshop, then all verbs. The page has no date, so the same
    version always gives the same text."""
    own, *others = verbs
    lines = [
        f'.TH JITTER\\-WORKSHOP 1 "" "{PROGRAM} {_text(version)}" "User Commands"',
        ".SH NAME",
        f"{_text(PROGRAM)} \\- {_text(LINE)}",
        ".SH SYNOPSIS",
        f".B {_text(PROGRAM)}",
        _text(own.usage),
        ".br",
        f".B {_text(PROGRAM)}",
        "[\\-\\-session NAME] [\\-\\-root TREE] VERB \\&...",
        ".SH DESCRIPTION",
        _line(
            "Without a verb, the workshop starts: a course in the terminal. Each verb does one task of the workshop."
        ),
        *_doc(own.doc),
        ".SH OPTIONS",
        *_options(own.options),
        ".SH VERBS",
        _line(
            f"'{PROGRAM} VERB --help' prints the options of one verb. Every verb takes --session, --root and --help."
        ),
    ]
    for verb in others:
        lines += [f".SS {_text(verb.name)}", _line(cleaned_sentence(verb.line)), ".PP"]
        lines += [f".B {_text(PROGRAM)} {_text(verb.name)}", _text(verb.usage)]
        for value, said in verb.words:
            lines += [".TP", f".I {_text(value.name)}", _line(said)]
        lines += _options(verb.own)
        lines += _doc(verb.doc)
    lines.append(".SH EXIT STATUS")
    for code, meaning in ENDS:
        lines += [".TP", f".B {_text(code)}", _line(meaning)]
    lines.append(".SH FILES")
    for name, meaning in FILES:
        lines += [".TP", f".I {_text(name)}", _line(meaning)]
    return "\n".join(lines) + "\n"


def _options(options: Sequence[Option]) -> Iterator[str]:
    for option in options:
        flags = ", ".join(f"\\fB{_text(flag)}\\fR" for flag in option.flags)
        value = f" \\fI{_text(option.value.name)}\\fR" if option.value is not None else ""
        yield from (".TP", f"{flags}{value}", _line(option.help))


def _doc(text: str) -> Iterator[str]:
    """Yield a help text as lines of roff that keep their line breaks and indentation."""
    if text.strip():
        yield ".PP"
        yield ".nf"
        for line in text.strip("\n").splitlines():
            yield _line(line) if line.strip() else ".sp"
        yield ".fi"


def _line(text: str) -> str:
    """Return a line of text for roff. The line is escaped if roff would take it for a request."""
    said = _text(" ".join(text.split()) if not text.startswith(" ") else text.rstrip())
    return f"\\&{said}" if said.startswith((".", "'", " ")) else said


def _text(text: str) -> str:
    """Escape the backslashes and hyphens of a text, so that roff prints the text unchanged."""
    return re.sub("-", r"\\-", text.replace("\\", "\\e"))
