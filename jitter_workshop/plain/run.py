"""Measure in the line-by-line workshop: one line every few blocks; Ctrl-C stops the run and not the workshop."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from jitter_workshop.bench.cancel import CancelToken, stopped_by_signals
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.model.run import Progress, Run, RunStarted
from jitter_workshop.model.text import clean
from jitter_workshop.plain.talk import Talk
from jitter_workshop.presenter.class_host import disturbed
from jitter_workshop.presenter.run import remark
from jitter_workshop.stats.curve import value_at
from jitter_workshop.stats.scale import nice_ns

_LINES = 5
"""The most lines that a run prints, for any number of blocks."""


class PlainObserver:
    """Print between blocks, never during one, and wait for nothing."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk

    def started(self, event: RunStarted) -> None:
        tids = ", ".join(f"{clean(name, 20)} {tid}" for name, tid in event.tids.items())
        if tids:
            self._talk.row(f"  thread ids: {tids}")

    def block_done(self, progress: Progress) -> None:
        step = max(1, progress.total // _LINES)
        if progress.done % step and progress.done != progress.total:
            return
        wide = len(str(progress.total))
        p50, p999 = (nice_ns(value_at(progress.curve, p)) for p in (50.0, 99.9))
        left = f"   {progress.seconds_left:.0f} s left" if progress.seconds_left >= 0.5 else ""
        self._talk.row(f"  block {progress.done:>{wide}} of {progress.total}   p50 {p50:>7}   p99.9 {p999:>7}{left}")


def run_plainly(workshop: Workshop, request: MeasureRequest, talk: Talk) -> Run:
    """Measure on this thread, and say so first. Ctrl-C cancels the run and keeps its finished blocks. HUP and TERM do
    the same and then act as usual. Raises WorkshopError where there is no run."""
    talk.tell("Measuring. Ctrl-C stops the run, not the workshop.")
    with stopping() as token:
        run = workshop.measure(request, PlainObserver(talk), token, partial(queued, talk))
        if said := f"{remark(run)} {disturbed(workshop.class_view, run)}".strip():
            talk.tell(said, "  ")
        return run


def queued(talk: Talk, sentence: str) -> None:
    """Tell what is waited for; "": the turn has come."""
    talk.tell(f"{sentence} Ctrl-C stops waiting." if sentence else "The turn has come.", "  ")


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
