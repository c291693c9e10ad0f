"""Measure in the line-by-line workshop: one line every few blocks; Ctrl-C stops the run and not the workshop."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jitter_workshop.bench.cancel import CancelToken, stopped_by_signals
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.model.observe import Progress, RunStarted
from jitter_workshop.model.run import Run
from jitter_workshop.model.text import clean
from jitter_workshop.presenter.class_host import disturbed
from jitter_workshop.presenter.lines import wrap, written
from jitter_workshop.presenter.run import remark
from jitter_workshop.stats.curve import value_at
from jitter_workshop.stats.scale import nice_ns

_LINES = 5
"""The most lines that a run prints, for any number of blocks."""

Write = Callable[[str], object]


class PlainObserver:
    """Print between blocks, never during one, and wait for nothing."""

    def __init__(self, write: Write, width: int) -> None:
        self._write = write
        self._width = width

    def started(self, event: RunStarted) -> None:
        tids = ", ".join(f"{clean(name, 20)} {tid}" for name, tid in event.tids.items())
        self._write(f"  thread ids: {tids}"[: self._width].rstrip() + "\n" if tids else "")

    def block_done(self, progress: Progress) -> None:
        step = max(1, progress.total // _LINES)
        if progress.done % step and progress.done != progress.total:
            return
        wide = len(str(progress.total))
        p50, p999 = (nice_ns(value_at(progress.curve, p)) for p in (50.0, 99.9))
        left = f"   {progress.seconds_left:.0f} s left" if progress.seconds_left >= 0.5 else ""
        text = f"  block {progress.done:>{wide}} of {progress.total}   p50 {p50:>7}   p99.9 {p999:>7}{left}"
        self._write(f"{text[: self._width].rstrip()}\n")


def run_plainly(workshop: Workshop, request: MeasureRequest, write: Write, width: int) -> Run:
    """Measure on this thread. Ctrl-C cancels the run and keeps its finished blocks. HUP and TERM do the same and then
    act as usual. Raises WorkshopError where there is no run."""
    with stopping() as token:
        run = workshop.measure(request, PlainObserver(write, width), token, queued(write, width))
        if said := f"{remark(run)} {disturbed(workshop.class_view, run)}".strip():
            write(written(wrap(said, width, "  ")))
        return run


def queued(write: Write, width: int) -> Callable[[str], None]:
    def say(sentence: str) -> None:
        write(written(wrap(f"{sentence} Ctrl-C stops waiting." if sentence else "The turn has come.", width, "  ")))

    return say


@contextmanager
def stopping() -> Iterator[CancelToken]:
    """While this is open, let signals cancel the yielded token, and not the workshop. SIGTERM and SIGHUP are meant for
    the whole program, so they act as usual afterwards."""
    token, received = CancelToken(), list[int]()
    try:
        with stopped_by_signals(token) as received:
            yield token
    finally:
        token.close()
        for signum in received:
            if signum != signal.SIGINT:
                signal.raise_signal(signum)
