"""Measure in the line-by-line workshop, and show a run's causes. A run prints one line every few blocks. Ctrl-C stops
the run, not the workshop."""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType

from jitter_workshop.bench.cancel import CancelToken, stopped_by_signals
from jitter_workshop.flow.attribution import Stopped
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.model.evidence import EvidenceReport
from jitter_workshop.model.run import Progress, Run, RunStarted
from jitter_workshop.model.text import SENTENCE, WORD, clean
from jitter_workshop.plain.talk import Talk
from jitter_workshop.presenter.classes.class_host import disturbance_sentence
from jitter_workshop.presenter.runs.causes import MEASURE_FIRST, NO_TRACE, mounting, stall_report_lines
from jitter_workshop.presenter.runs.one_run import rate_so_far, value_so_far
from jitter_workshop.presenter.runs.progress import LateLine
from jitter_workshop.presenter.runs.run import remark, write_to_be_shown
from jitter_workshop.stats.effect import judged_by
from jitter_workshop.stats.figures import DUE_TAIL, FIGURES, P99_FROM_DUE_TIME, least_length_ns
from jitter_workshop.stats.scale import nice_ns

_LINES = 5
"""The most lines that a run prints, for any number of blocks."""
_WORST = 5
"""The number of worst stalls that are listed; with few of them the causes above stay on the screen."""


class PlainObserver:
    """Print a run's progress between blocks, never during one, so that the output disturbs no measurement.

    - ``workload``: the run's workload. Of ``spin`` the rate of the stalls that judge it is printed, and the block's
      longest value.
    - ``from_due_time``: True if the chapter judges by latency from the due time; then this is the value that is
      printed.
    - ``asked``: the percentile by which the chapter judges; None for the workload's usual figure.
    """

    def __init__(
        self,
        talk: Talk,
        *,
        workload: str = "",
        from_due_time: bool = False,
        asked: str | None = None,
    ) -> None:
        self._talk = talk
        self._workload = workload
        self._from_due_time = from_due_time
        self._asked = asked

    def started(self, event: RunStarted) -> None:
        tids = ", ".join(f"{clean(name, WORD)} {tid}" for name, tid in event.tids.items())
        if tids:
            self._talk.row(f"  thread ids: {tids}")

    def block_done(self, progress: Progress) -> None:
        step = max(1, progress.total // _LINES)
        if progress.done % step and progress.done != progress.total:
            return
        wide = len(str(progress.total))
        told = f"p50 {self._value(progress, '50'):>7}   p99.9 {self._value(progress, '99.9'):>7}"
        if self._from_due_time:
            told = f"{FIGURES[P99_FROM_DUE_TIME].title} {self._value(progress, DUE_TAIL):>7}"
        elif rate := rate_so_far(progress, self._workload, self._asked):
            over = nice_ns(least_length_ns(judged_by(self._workload, self._asked)))
            told = f"stalls over {over} {rate.short:>7}   worst {nice_ns(progress.block.max):>7}"
        left = f"   {progress.seconds_left:.0f} s left" if progress.seconds_left >= 0.5 else ""
        mark = f"   {clean(progress.curve.origin, WORD)}" if progress.curve.origin else ""
        row = f"  block {progress.done:>{wide}} of {progress.total}   {told}{mark}{left}"
        self._talk.row(row)

    def _value(self, progress: Progress, percentile: str) -> str:
        return nice_ns(value_so_far(progress, percentile))


def run_plainly(
    workshop: Workshop,
    request: MeasureRequest,
    talk: Talk,
    *,
    from_due_time: bool = False,
    asked: str | None = None,
) -> Run:
    """Print that a run begins, and measure on this thread. Ctrl-C stops the run and keeps its finished blocks. HUP and
    TERM do the same, and then act as usual. ``from_due_time``, ``asked``: as in
    :class:`PlainObserver`. Raise WorkshopError if the measurement gives no run."""
    talk.tell("Measuring. Ctrl-C stops the run, not the workshop.")
    with stopping() as token:
        observer = PlainObserver(talk, workload=request.workload, from_due_time=from_due_time, asked=asked)
        try:
            run = workshop.measure(request, observer, token, partial(queued, talk))
        finally:
            for trouble in workshop.after_run:
                talk.tell(f"! {trouble}", "  ")
        if said := f"{remark(run)} {disturbance_sentence(workshop.context.class_view, run)}".strip():
            talk.tell(said, "  ")
        return run


def queued(talk: Talk, sentence: str) -> None:
    """Print a sentence on what the run waits for. An empty sentence means that the user's turn has come."""
    talk.tell(f"{sentence} Ctrl-C stops waiting." if sentence else "Your turn has begun.", "  ")


@contextmanager
def stopping() -> Iterator[CancelToken]:
    """Yield a token that Ctrl-C, SIGTERM and SIGHUP cancel. During the ``with`` block, these signals do not end the
    workshop. If SIGTERM or SIGHUP came during the block, the signal has its usual effect after the block."""
    token, received = CancelToken(), list[int]()
    try:
        with stopped_by_signals(token) as received:
            yield token
    finally:
        token.close()
        for signum in received:
            if signum != signal.SIGINT:
                signal.raise_signal(signum)


def tell_causes(workshop: Workshop, walk: ChapterWalk, talk: Talk) -> None:
    """Show the causes of this chapter's newest traced run. If no run was traced, offer to make one. Raise WorkshopError
    if the run or the explanation fails."""
    run = walk.runs.traced_run()
    if run is None:
        further = None if walk.hunts else walk.measuring.traced_request()
        if further is None:
            talk.tell(MEASURE_FIRST)
            return
        if workshop.context.mount_command:
            talk.tell(mounting(workshop.context.mount_command, "then v looks again"))
            return
        talk.tell(
            "No run of this chapter has a trace: the chapter measures without a trace, so that its runs can be "
            "compared."
        )
        if not walk.measuring.may_begin(further):
            talk.tell(write_to_be_shown(further))
        if talk.ask("Enter measures once more, with a trace · any other answer goes back"):
            return
        run = run_plainly(workshop, further, talk)
    _tell_causes_of(workshop, run, talk)


def _tell_causes_of(workshop: Workshop, run: Run, talk: Talk) -> None:
    if not workshop.context.runs.traced(run):
        talk.tell(clean(run.notes.get("evidence", NO_TRACE), SENTENCE))
        return
    try:
        with stopped_by_ctrl_c() as progress:
            report = workshop.context.runs.causes(run, partial(progress, "explaining"))
    except Stopped:
        talk.tell("Stopped: v begins again.")
        return
    # Each branch has one type, which is all that the type checker can follow.
    if isinstance(report, EvidenceReport):
        report = dataclasses.replace(report, worst=report.worst[:_WORST])
    else:
        report = dataclasses.replace(report, worst=report.worst[:_WORST])
    talk.say("", *stall_report_lines(report, talk.width, run.label), "")


@contextmanager
def stopped_by_ctrl_c() -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function that shows the progress of some work. Its arguments are the work's name, the number of finished
    parts, and the number of all parts. After Ctrl-C, the next call of this function raises Stopped, which ends the
    work. During the ``with`` block, Ctrl-C does not end the workshop."""
    pressed: list[int] = []
    late = LateLine()

    def press(signum: int, _: FrameType | None) -> None:
        pressed.append(signum)

    def progress(what: str, done: int, total: int) -> None:
        if pressed:
            raise Stopped("it was stopped")
        late.told(f"{what} (Ctrl-C stops it)", done, total)

    before = signal.signal(signal.SIGINT, press)
    try:
        yield progress
    finally:
        signal.signal(signal.SIGINT, before)
        late.close()
