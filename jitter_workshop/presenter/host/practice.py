"""Explain a practice machine before it opens, and say how it ended."""

from __future__ import annotations

from jitter_workshop.flow.host_ops.practising import SHAPE
from jitter_workshop.model.text import LABEL, clean
from jitter_workshop.presenter.text.lines import Lines, wrap
from jitter_workshop.presenter.text.styled import Text

QUESTION = "Open a practice machine?"
KEYS = "Enter opens the machine · Esc stays here"
_WHAT = (
    "A practice machine is a virtual machine with a real kernel. You are root in this machine. Change and break what "
    "you like: nothing that is done in the machine changes this host."
)
_TIMES = (
    "The machine's processors are emulated. Counts from this machine are real, but its times mean nothing. So curves "
    "and times are marked 'emulated', and the chapters compare counts instead of times."
)
_KEPT = (
    "The workshop starts in the machine. Press q to come back here. The sessions that you make in the machine are "
    "saved on this host."
)


def describe_machine(chapter: str, width: int) -> Lines:
    """Return lines that say what a practice machine is, and how many CPUs and how much memory it has. ``chapter``: the
    title of the chapter that opens in it, or ""."""
    hardware = SHAPE.hardware
    taken = f"{hardware.memory_mib} MiB of memory"
    size = f"The machine has {hardware.cpus} CPUs and takes {taken} while it runs. {SHAPE.sentence}"
    where = _KEPT.replace("The workshop", f"The chapter '{clean(chapter, LABEL)}'") if chapter else _KEPT
    lines: Lines = []
    for text in (_WHAT, size, _TIMES, where):
        lines += [*wrap(text, width), Text()]
    return lines[:-1]


def machine_ended_sentence(code: int) -> str:
    """Return a sentence on how the machine ended."""
    if code == 0:
        return "You are back on this host. Nothing that was done in the practice machine changed this host."
    how = f"signal {-code} ended it" if code < 0 else f"its exit code is {code}"
    return f"The practice machine ended early ({how}). You are back on this host."
