"""Describe the curves that other tools measured and that are drawn beside a session's own."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.model.text import clean
from jitter_workshop.model.walk import RunCurve

NOTHING = "Nothing was imported: 'jitter-workshop sessions import FILE' brings another tool's curve here."
HIDDEN = "The imported curves are hidden."
MOST = 3
"""More curves beside a chapter's own runs cannot be told apart."""


def newest(curves: Sequence[RunCurve]) -> tuple[RunCurve, ...]:
    """Return the curves that are shown beside a chapter's runs."""
    return tuple(curves[-MOST:])


def said(known: Sequence[RunCurve], drawn: bool) -> str:
    """Tell which of the known curves are drawn, and what they are not for; or why none is drawn."""
    if not known:
        return NOTHING
    if not drawn:
        return HIDDEN
    curves = newest(known)
    named = ", ".join(f"{clean(c.label, 40)} ({clean(c.curve.origin, 24)})" for c in curves)
    rest = f", the newest of {len(known)}" if len(known) > len(curves) else ""
    return f"Not measured here: {named}{rest}. They are for looking at; no comparison and no verdict uses them."
