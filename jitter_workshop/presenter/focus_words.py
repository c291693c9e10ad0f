"""Describe what a chapter's evidence shows of a traced run: for the screen and for the line-by-line workshop."""

from __future__ import annotations

from collections.abc import Sequence

_SHOWN = {
    "frequency": "each change of frequency that was asked for",
    "residence": "how long each thread ran on which CPU, who ran there instead and who moved it",
    "work": "work, softirqs and interrupts by function, how often and how long",
    "left": "what is left: whether anything but your thread ran on its CPU",
}
"""The words of a lesson's ``evidence`` that need the kernel's trace."""


def focused(evidence: Sequence[str]) -> bool:
    """Return True if a chapter shows a page of its own about a traced run, before the causes."""
    return any(word in _SHOWN for word in evidence)


def offered(evidence: Sequence[str], traced: bool) -> str:
    """Describe what the key of the causes shows here. ``traced``: a run with a trace exists; else one more run is
    made."""
    told = "; ".join(_SHOWN[word] for word in evidence if word in _SHOWN)
    more = "" if traced else " It takes one more run, with the kernel's trace."
    return f"v shows {told or 'who took the time, by the kernel'}.{more}"
