"""Warn of runs that sent few of their planned messages, because a thread was stopped for long."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from jitter_workshop.model.course import Shows
from jitter_workshop.model.effect import RUN_NAMES
from jitter_workshop.model.evidence import MEASURED
from jitter_workshop.model.run import INTENDED, Run
from jitter_workshop.model.spec import MEASURED_THREADS
from jitter_workshop.model.text import WORD, capital, clean
from jitter_workshop.presenter.text.lines import Lines, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.report.diagnosis_words import label
from jitter_workshop.stats.figures import FIGURES, KnownRun, figure_with_id
from jitter_workshop.stats.omission import (
    BY_MESSAGE,
    leaves_out_waits,
    planned_share,
    sent_share,
    sent_told,
    share_told,
)
from jitter_workshop.stats.scale import nice_ns

_STOP = "stall"
"""The noise that stops the producer and the accumulator once."""
_TAIL = "99.9"
_SENT_APART = 1.25
"""The least factor between the shares of the planned messages that two runs sent, to be told."""
_MOSTLY = 0.5
"""The least share of the stalled time with which a cause is named as the one that stopped a thread."""


def few_sent(runs: Sequence[KnownRun], titles: Collection[str] = (), *, key: str = "") -> Text:
    """Return a warning if some of ``runs``, one run or two, sent few of the planned messages, and a figure that is told
    of them is wrong for this reason. It is a latency that leaves out the waits (``stats.omission.leaves_out_waits``),
    or a count that grows with the messages. Otherwise return an empty text: latency has these waits.

    ``titles``: the titles of the counts that are told. ``key``: the key that makes the run of :func:`to_repeat` again;
    "" for none.
    """
    wrong = _wrong(runs, titles)
    if not wrong:
        return Text()
    told = _few_told(runs).append(f" {wrong}", "text")
    if key and (again := to_repeat(runs, titles)) is not None:
        run = f" the {RUN_NAMES[again]} run" if len(runs) > 1 else ""
        told.append(f" Measure{run} again ({key}).", "text")
    return told


def sent_apart(runs: Sequence[KnownRun]) -> str:
    """Return a sentence if one of two runs of the ring sent clearly fewer of its planned messages than the other,
    because its threads were stopped, and the latencies of both runs have these waits. Return "" for other runs.

    It holds for the pacing that spins alone: a message that came due while the sender was stopped is never sent, and
    latency counts it as late. A schedule sends each late message at once.
    """
    if len(runs) != 2 or any(seen.run.pacing != "spin" or INTENDED not in seen.run.histograms for seen in runs):
        return ""
    shares = [planned_share(seen) for seen in runs]
    first, second = shares
    if first is None or second is None or max(first, second) < _SENT_APART * min(first, second):
        return ""
    if sent_share(runs[shares.index(min(first, second))]) is None:
        return ""
    both = " → ".join(share_told(min(share, 1.0)) for share in (first, second))
    return f"Sent of the planned messages: {both}. Those not sent count as late."


def blind_transit(run: Run, width: int) -> Lines:
    """Return a warning for a command that shows the transit of a run, if transit leaves out most waits; else []."""
    seen = KnownRun(run)
    if sent_share(seen) is None:
        return []
    name = FIGURES[_TAIL].title
    due = FIGURES[_TAIL].of(seen) if INTENDED in run.histograms else None
    told = f"; from when they were due, {name} is {nice_ns(due)}" if due is not None else ""
    return wrap(_few_told([seen]).append(f" Transit leaves out their waits{told}.", "bold text"), width)


def titles_of(shows: Shows | None) -> tuple[str, ...]:
    """Return the title of a chapter's figure, for :func:`few_sent`; () if there is none."""
    return () if shows is None else (figure_with_id(shows.figure).title,)


def _wrong(runs: Sequence[KnownRun], titles: Collection[str]) -> str:
    """Return the sentence on the figures that few messages make wrong; "" if there are none."""
    if all(sent_share(seen) is None for seen in runs):
        return ""
    if any(map(leaves_out_waits, runs)):
        return "The latencies leave out their waits."
    counts = [FIGURES[name].title for name in sorted(BY_MESSAGE) if FIGURES[name].title in titles]
    return f"So too few {counts[0]} were counted." if counts else ""


def _few_told(runs: Sequence[KnownRun]) -> Text:
    """Return the sentence on few messages, of runs of which at least one sent few. It names the cause that stopped a
    thread, if the trace shows one.

    The sentence is calm if the own load of each run with few messages took the CPU: it does so on purpose. It is red
    if nothing of this tool explains why a thread was stopped.
    """
    shares = [sent_share(seen) for seen in runs]
    few = [(seen, share) for seen, share in zip(runs, shares, strict=True) if share is not None]
    which = ""
    if len(runs) > 1:
        one = "the first run" if shares[0] is not None else "the second run"
        which = f" in {'both runs' if len(few) > 1 else one}"
    sent = f"{sent_told(*(share for _, share in few))} of the planned messages were sent{which}"
    if all(_by_own_load(seen) for seen, _ in few):
        loads = dict.fromkeys(clean(seen.run.noise, WORD) for seen, _ in few)
        return Text(f"The noise ({', '.join(loads)}) took the CPU for so long that {sent}.", "text")
    causes = {_stopped_by(seen) for seen, _ in few}
    by = f", mostly by {next(iter(causes))}" if len(causes) == 1 and None not in causes else ""
    return Text(f"{capital(sent)}: a thread was stopped for long{by}.", "bold bad")


def correction_told(seen: KnownRun) -> str:
    """Return a sentence if the corrected curve of a run stays near transit, because the noise stopped the threads while
    no message was on the way: no transit is as long as half of the stop. Return "" for other runs."""
    due = seen.run.histograms.get(INTENDED)
    main = seen.run.main_summary
    if seen.run.noise != _STOP or due is None or main is None or seen.timeless:
        return ""
    if main.max is None or due.max is None or 2 * main.max >= due.max:
        return ""
    return "No message was on the way at the stop, so the corrected curve stays near transit."


def to_repeat(runs: Sequence[KnownRun], titles: Collection[str]) -> int | None:
    """Return the index of the run that should be made again, because few messages make a figure wrong that is told of
    it, and its own load does not explain that. Of two such runs, return the one that sent fewer. Return None if there
    is none. ``titles``: as in :func:`few_sent`."""
    if not _wrong(runs, titles):
        return None
    shares = {at: share for at, seen in enumerate(runs) if (share := sent_share(seen)) is not None}
    found = {at: share for at, share in shares.items() if not _by_own_load(runs[at])}
    return min(found, key=lambda at: found[at], default=None)


def _by_own_load(seen: KnownRun) -> bool:
    """Return True if the load that this tool made beside a run stopped its threads. The trace, if there is one, must
    not show that a task which is not this load took most of the time."""
    if seen.run.noise is None:
        return False
    most = _main_cause(seen)
    return most is None or most[0] != "task" or most[1] in (seen.run.noise, MEASURED)


def _stopped_by(seen: KnownRun) -> str | None:
    """Return the words for the cause that took most of a run's stalled time, by its trace; None if it is not known."""
    most = _main_cause(seen)
    return None if most is None or most[0] in ("no_event", "around") else label(*most)


def _main_cause(seen: KnownRun) -> tuple[str, str] | None:
    """Return the kind and the name of the cause that took at least the share _MOSTLY of a run's stalled time. The
    measured threads are one cause. Return None if no cause did, or if the run has no trace."""
    took: dict[tuple[str, str], int] = {}
    for one in seen.report.causes if seen.report is not None else ():
        key = one.kind, MEASURED if one.kind == "task" and one.name in MEASURED_THREADS else one.name
        took[key] = took.get(key, 0) + one.total_ns
    most = max(took, key=lambda key: took[key], default=None)
    return most if most is not None and took[most] >= _MOSTLY * sum(took.values()) > 0 else None
