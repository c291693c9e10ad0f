"""Read the knee: which rate of thief sits at which percentile, computed from this host's own figures.

A thief that comes r times a second and takes S each time makes late what arrives while it works: at m messages a second
S·m messages, one at least. So the share of late messages is r·max(S, 1/m), and its knee stands at the percentile
100·(1 − r·max(S, 1/m)): 250 ticks among 100,000 messages at 99.75, one event a second at 99.999. A longer stall moves
the knee left.
"""

from __future__ import annotations

from jitter_workshop.model.run import Run
from jitter_workshop.stats.scale import nice_ns

_STALLS_TO_SPEAK = 10
"""Of fewer stalls no rate is stated: the next run would have another one."""


def knee_percentile(rate_hz: float, stall_ns: float, messages_per_second: float) -> float:
    """Where a thief's knee stands, 0..100. Shares of one or more (it is always there) give 0."""
    if messages_per_second <= 0:
        return 0.0
    late = rate_hz * max(stall_ns / 1e9, 1 / messages_per_second)
    return 100 * (1 - min(late, 1.0))


def nice_percentile(percentile: float) -> str:
    """A percentile with as many nines as it has, and two digits behind them: p0, p37, p97.5, p99.75, p99.9991."""
    beyond = 1 - percentile / 100
    if beyond >= 0.1:
        return f"p{percentile:.0f}"
    if beyond < 1e-9:
        return "p100"
    digits = 1
    while beyond * 10**digits < 10 and digits < 8:
        digits += 1
    text = f"{percentile:.{max(digits - 1, 1)}f}".rstrip("0").rstrip(".")
    return f"p{text}"


def measured_seconds(run: Run) -> float:
    """The time in which messages were recorded: the blocks, without the pauses between them."""
    return sum(block.duration_ns for block in run.blocks) / 1e9 or run.duration_s


def messages_per_second(run: Run) -> float | None:
    """The rate at which messages really came (pauses and lateness included); None for an empty run."""
    summary = run.histograms.get(run.main_histogram)
    seconds = measured_seconds(run)
    return summary.count / seconds if summary and summary.count and seconds > 0 else None


def knee_sentences(run: Run, interrupts: tuple[tuple[str, int, int, float], ...]) -> tuple[str, ...]:
    """A few sentences, largest share first: the run's own rate, its stalls by length, its most frequent interrupt."""
    rate = messages_per_second(run)
    if rate is None:
        return ()
    what = "messages" if run.workload == "ring" else "readings"
    found = [
        f"{rate:,.0f} {what} a second came through. One event a second that delays one of them stands at "
        f"{nice_percentile(knee_percentile(1, 0, rate))}, 250 a second at "
        f"{nice_percentile(knee_percentile(250, 0, rate))}."
    ]
    found.extend(_stall_sentences(run, rate))
    if interrupts:
        name, cpu, _, per_second = interrupts[0]
        stands = nice_percentile(knee_percentile(per_second, 0, rate))
        found.append(
            f"The commonest interrupt, {name}, came {per_second:,.0f} times a second on CPU {cpu}. If each delays one "
            f"message, its knee stands near {stands}."
        )
    return tuple(found)


def _stall_sentences(run: Run, rate: float) -> list[str]:
    """One sentence for each decade of stall lengths (stalls of this length, not of this and more)."""
    found = []
    rates = sorted(run.stalls.rates, key=lambda r: r.threshold_ns)
    for index, this in enumerate(rates):
        longer = rates[index + 1] if index + 1 < len(rates) else None
        count = this.count - (longer.count if longer else 0)
        per_second = this.per_second - (longer.per_second if longer else 0.0)
        stolen = this.stolen_ns_per_second - (longer.stolen_ns_per_second if longer else 0.0)
        if count < _STALLS_TO_SPEAK or per_second <= 0 or stolen <= 0:
            continue
        mean_ns = stolen / per_second
        late = max(1.0, mean_ns * rate / 1e9)
        # The knee of this length stands left of what rarer, longer stalls add to it.
        share = (stolen + (longer.stolen_ns_per_second if longer else 0.0)) / 1e9
        share = max(share, (per_second + (longer.per_second if longer else 0.0)) / rate)
        bounds = f"{nice_ns(this.threshold_ns)} to {nice_ns(longer.threshold_ns)}" if longer else ""
        length = f"of {bounds}" if longer else f"over {nice_ns(this.threshold_ns)}"
        made_late = "one message" if late < 1.5 else f"about {late:,.0f} messages"
        found.append(
            f"Stalls {length}: {per_second:,.3g} a second, {nice_ns(mean_ns)} each, {made_late} late each time. "
            f"The curve climbs to them near {nice_percentile(100 * (1 - min(share, 1.0)))}."
        )
    found.reverse()
    return found
