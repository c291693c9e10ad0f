"""Compute the knee of a noise: the percentile at which the noise shows in a run.

A run has m messages a second. A noise comes r times a second, and delays n messages each time. The noise shows at the
percentile 100·(1 − r·n/m). All figures come from the run itself.

For example, m is 100,000 and n is 1. Then a tick of 250 Hz shows at the percentile 99.75. One event a second shows at
99.999. A stall of S seconds delays n = S·m messages, if S exceeds the time between two messages. So longer stalls show
at lower percentiles.
"""

from __future__ import annotations

from dataclasses import dataclass

from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.run import Run, Stalls
from jitter_workshop.model.spec import KINDS, TWO_THREADS
from jitter_workshop.stats.comparison import rate_in_words
from jitter_workshop.stats.scale import nice_ns, nice_number

_STALLS_TO_SPEAK = 10
"""Least number of stalls for which a rate is stated: with fewer stalls the next run would have another rate."""

_EVERY = 0.95
"""The messages that a stall delays on average, from which on each stall is said to delay one."""
_USUAL = 0.5
"""The share of the wake-ups from which on a length is that of a normal wake-up."""
_LEAST_KNEE = 1.0
"""The percentile of the leftmost knee that is told."""
_LARGEST_SHARE = 0.1
"""If stalls take more than this share of the time, they overlap and delay the producer, too: messages no longer come
at a steady rate."""


def knee_percentile(rate_hz: float, stall_ns: float, messages_per_second: float) -> float:
    """Return the percentile (0..100) of a noise's knee. Each event is assumed to delay at least one message. Return 0
    if the noise's stalls fill the whole time."""
    if messages_per_second <= 0:
        return 0.0
    late = rate_hz * max(stall_ns / 1e9, 1 / messages_per_second)
    return 100 * (1 - min(late, 1.0))


def nice_percentile(percentile: float) -> str:
    """Return a percentile as short text, such as p37, p97.5 or p99.999. At most two digits follow the leading nines of
    the number."""
    beyond = 1 - percentile / 100
    if beyond >= 0.1:
        return f"p{percentile:.0f}"
    nines = 1
    while beyond * 10 ** (nines + 1) < 1 and nines < 9:
        nines += 1
    return "p" + f"{percentile:.{nines}f}".rstrip("0").rstrip(".") if nines < 9 else "p100"


def counted_seconds(run: Run) -> float:
    """Return the seconds that a run's kernel counters cover. If the run does not give this time, return the seconds of
    its blocks."""
    return run.counted_s or _block_seconds(run)


def _block_seconds(run: Run) -> float:
    return sum(block.duration_ns for block in run.blocks) / 1e9 or run.duration_s


def messages_per_second(run: Run) -> float | None:
    """Return the measured rate of messages, in messages per second; None for an empty run."""
    summary = run.main_summary
    # Count only the blocks, without the pauses between them and a sampler's own pauses, as the rates of stalls do.
    seconds = run.rated_s if run.rated_s < run.duration_s else _block_seconds(run)
    return summary.count / seconds if summary and summary.count and seconds > 0 else None


@dataclass(frozen=True, slots=True)
class StallClass:
    """Hold the stalls whose length is in one decade, such as 10 to 100 µs.

    - ``at_least_hz``: the number of stalls a second that are in this decade or longer.
    - ``at_least_share``: the share of time that these stalls took.
    """

    low_ns: int
    high_ns: int | None
    count: int
    per_second: float
    mean_ns: float
    at_least_hz: float
    at_least_share: float


def stall_classes(stalls: Stalls) -> tuple[StallClass, ...]:
    """Return the stalls of a run by decades of length, the shortest first. Empty decades are left out. Each number in
    ``stalls`` counts the stalls that have a certain length or are longer. A returned decade counts only the stalls
    whose length is in this decade."""
    found = []
    rates = sorted(stalls.rates, key=lambda r: r.threshold_ns)
    for index, this in enumerate(rates):
        longer = rates[index + 1] if index + 1 < len(rates) else None
        count = this.count - (longer.count if longer else 0)
        per_second = this.per_second - (longer.per_second if longer else 0.0)
        taken = this.stolen_ns_per_second - (longer.stolen_ns_per_second if longer else 0.0)
        if count > 0 and per_second > 0 and taken > 0:
            found.append(
                StallClass(
                    low_ns=this.threshold_ns,
                    high_ns=longer.threshold_ns if longer else None,
                    count=count,
                    per_second=per_second,
                    mean_ns=taken / per_second,
                    at_least_hz=this.per_second,
                    at_least_share=this.stolen_ns_per_second / 1e9,
                )
            )
    return tuple(found)


def knee_sentences(
    run: Run, interrupts: tuple[tuple[str, int, int, float], ...], curve: PercentileCurve | None = None
) -> tuple[str, ...]:
    """Return sentences on the knees of a run. First comes what was found: the run's rate, and the stalls by length, the
    longest first. With ``curve``, a sentence on stalls also gives a percentile: there the latency in the curve is as
    long as these stalls. Then comes what it means: the knee of the most frequent interrupt, and the rule for the knee
    of any event. Return () for a run without messages."""
    rate = messages_per_second(run)
    if rate is None:
        return ()
    what = KINDS[run.workload].counted if run.workload in KINDS else "messages"
    one, many = (nice_percentile(knee_percentile(hz, 0, rate)) for hz in (1, 250))
    found = [f"{rate_in_words(run).capitalize()}."] if run.workload == "ack" and rate_in_words(run) else []
    found.append(f"The run had {nice_number(rate)} {what} a second.")
    classes = [c for c in stall_classes(run.stalls) if c.count >= _STALLS_TO_SPEAK and not _usual(run, c, rate)]
    found.extend(_stall_sentence(c, rate, what, curve) for c in reversed(classes))
    taken = max((c.at_least_share for c in classes), default=0.0)
    if taken > _LARGEST_SHARE:
        held = next(iter(KINDS[run.workload].threads)) if run.workload in TWO_THREADS else ""
        found.append(
            f"In all, stalls take {100 * taken:.0f} % of the time. Where no percentile is calculated, the calculation "
            f"does not hold: the stalls overlap{f' and also delay the {held}' if held else ''}."
        )
    if classes and run.workload == "ring":
        found.append(
            "Stalls of the producer are included. Such a stall holds messages back before they get their stamp, so "
            "the curve from the due time shows the stall, and the curve of transit does not."
        )
    # An interrupt for each message or more has its knee at the start of the curve, which says nothing.
    if interrupts and knee_percentile(interrupts[0][3], 0, rate) >= _LEAST_KNEE:
        name, cpu, _, per_second = interrupts[0]
        stands = nice_percentile(knee_percentile(per_second, 0, rate))
        # The kernel's counters also grow while a sampler pauses: by its own timer, for one.
        meets = (
            f"each interrupt delays one of the {what}. The knee is further right if most interrupts delay none of them"
        )
        if run.rated_s < run.duration_s:
            meets = (
                "all interrupts come while the thread samples. The knee is further right if most interrupts come in "
                "pauses"
            )
        found.append(
            f"The most frequent interrupt, {name}, came {nice_number(per_second)} times a second on CPU {cpu}: "
            f"the knee for this interrupt is at {stands} if {meets}."
        )
    found.append(
        f"If an event delays one of these {what} each second, the knee is at {one}. If the event comes 250 times a "
        f"second, the knee is at {many}."
    )
    return tuple(found)


def _usual(run: Run, stalls: StallClass, rate: float) -> bool:
    """Return True if most wake-ups of a run are as long as these stalls: a normal wake-up takes that long on the host,
    so it is no stall to explain. ``rate``: the wake-ups a second."""
    return run.workload == "wakeup" and stalls.at_least_hz >= _USUAL * rate


def _stall_sentence(stalls: StallClass, rate: float, what: str, curve: PercentileCurve | None) -> str:
    length = f"over {nice_ns(stalls.low_ns)}"
    if stalls.high_ns is not None:
        length = f"of {nice_ns(stalls.low_ns)} to {nice_ns(stalls.high_ns)}"
    late = stalls.mean_ns * rate / 1e9 if what == "messages" else 1.0
    share = stalls.at_least_share if what == "messages" else stalls.at_least_hz / rate
    came = f"came {nice_number(stalls.per_second)} times a second"
    text = f"Stalls {length} {came} and took {nice_ns(stalls.mean_ns)} on average."
    seen = next((p.percentile for p in curve.points if p.value_ns >= stalls.low_ns), None) if curve else None
    if seen is not None:
        text += f" In this run the curve passes {nice_ns(stalls.low_ns)} at {nice_percentile(seen)}."
    if late < _EVERY:
        text += f" About {max(round(100 * late), 1)} % of them delayed a message: the others fell between two messages."
    else:
        made_late = f"one of the {what}" if late < 1.5 else f"about {nice_number(round(late))} {what}"
        text += f" Each stall delayed {made_late}."
    if share <= _LARGEST_SHARE:
        text += f" By calculation the curve begins to climb near {nice_percentile(100 * (1 - share))}."
    return text
