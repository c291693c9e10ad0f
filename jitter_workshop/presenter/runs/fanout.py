"""Show why rare latencies matter: the share of requests that meet such a latency. Here each request asks many hosts
like this one.
"""

from __future__ import annotations

from jitter_workshop.model.run import Run
from jitter_workshop.presenter.text.lines import Lines, small_title, table_lines, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.stats import sample_size
from jitter_workshop.stats.fanout import hosts_to_meet, share_met
from jitter_workshop.stats.scale import nice_ns

MANY_HOSTS = "ONE REQUEST TO MANY HOSTS"
TOPIC = "fan-out"
"""The word of a lesson's ``evidence`` that asks for these lines."""

_SHARES = {"99": 1e-2, "99.9": 1e-3, "99.99": 1e-4}
"""Percentile → the share of messages at or beyond it."""
_HOSTS = (1, 10, 100, 1_000)
_MANY = 100
_ROOM_FOR_ALL, _ROOM_FOR_TWO = 60, 38


def fan_out(run: Run, width: int) -> Lines:
    """Return a table for requests that ask one or many hosts for an answer. A row is a percentile of the run, and a
    column is a number of hosts. A cell is the share of requests with at least one answer as slow as the percentile, or
    slower. Sentences on the table follow. Latencies are shown only for the workload ``ring``. ``run``: the chapter's
    first run."""
    summary = run.latency
    known = summary.percentiles if summary is not None and run.workload == "ring" else {}
    few = {name for name, mark in sample_size.marks_of_run(run).items() if mark == sample_size.FEW_STALLS}
    latencies = {name: value for name in _SHARES if (value := known.get(name)) is not None}
    told = {
        name: f"{sample_size.FEW_STALLS if name in few else ''}{nice_ns(value)}" for name, value in latencies.items()
    }
    hosts = _HOSTS if width >= _ROOM_FOR_ALL else _HOSTS[1:3] if width >= _ROOM_FOR_TWO else _HOSTS[2:3]
    rows = [["", *(["latency"] if latencies else []), *(f"{n:,} host{'s' * (n > 1)}" for n in hosts)]]
    for name, share in _SHARES.items():
        latency = [told.get(name, nice_ns(None))] if latencies else []
        rows.append([f"p{name}", *latency, *(two_digit_percent(share_met(share, n)) for n in hosts)])
    lines = [small_title(MANY_HOSTS), *table_lines(rows, width, right=range(1, 6))]
    for one in sample_size.explain_marks(sample_size.FEW_STALLS for name in latencies if name in few):
        lines += wrap(Text(one, "dim"), width)
    for said in fanout_sentences(told):
        lines += [Text(), *wrap(said, width)]
    return lines


def fanout_sentences(latencies: dict[str, str]) -> tuple[str, ...]:
    """Return sentences on the row of p99.9 in the table. ``latencies``: percentile → value in words, of the learner's
    first run."""
    p999 = latencies.get("99.9")
    met = two_digit_percent(share_met(_SHARES["99.9"], _MANY))
    limit = f"a latency of {p999} or more, the first run's p99.9" if p999 is not None else "p99.9 or more"
    half = hosts_to_meet(_SHARES["99.9"], 0.5)
    return (
        f"One request asks {_MANY} hosts like this one and waits for all of them. Then {met} of such requests meet "
        f"{limit}. With {half} hosts, half of the requests do.",
        "The share is 1 − (1 − p)ⁿ: p is the share of slow messages (0.001 for p99.9), n the number of hosts. The "
        "formula holds if the hosts are slow at different times.",
    )


def two_digit_percent(share: float) -> str:
    """Return a share in percent with two digits, and never rounded to 100 %: ``0.01 %``, ``9.5 %``, ``>99 %``."""
    value = 100 * share
    if 99 < value < 100:
        return ">99 %"
    return f"{value:.2g} %" if value < 99.5 else "100 %"
