"""Give the words that a report uses in each of its forms: the fate of a write, the open points, the facts of a host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Literal

from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.history import CheckState, Snapshot
from jitter_workshop.model.host import HostSummary
from jitter_workshop.model.proof import PLACEMENT, Proof
from jitter_workshop.model.report import Fate, ReportDocument
from jitter_workshop.model.text import clean, many
from jitter_workshop.model.verdict import CONFIDENCE, ENOUGH_ROUNDS, VerdictWord
from jitter_workshop.stats.sample_support import FEW_SAMPLES, FEW_STALLS

SIGNS: dict[VerdictWord, str] = {"lower": "▼", "higher": "▲", "no_change": "=", "cannot_tell": "?"}
"""A sign beside the word of each verdict. The word alone is enough, without the sign and without colour."""

FATES: dict[Fate, str] = {
    "standing": "stands",
    "kept": "kept",
    "restored": "given back",
    "left_alone": "left alone",
    "refused": "refused",
    "gone": "gone",
    "rebooted": "gone with a reboot",
    "unknown": "not known",
}

KINDS: dict[Literal["check", "chapter", "standing", "reboot"], str] = {
    "standing": "still set",
    "reboot": "waiting for a reboot",
    "check": "could be better",
    "chapter": "chapters not done",
}
"""The kinds of open points, the host's own state first."""

EVIDENCE: dict[Literal["trace", "counters", "none"], str] = {
    "trace": "by the kernel's trace",
    "counters": "by counters: there is no trace of this run, so no stall has a named cause",
    "none": "not known",
}

OWN_PLACE = frozenset({"before", "after", "proofs", "culprits", "hosts", "changes", "events", "chapters", "imports"})
"""Notes that stand in their part of a report; the others stand at its end."""

FEW = (
    f"{FEW_SAMPLES} marks a percentile with fewer than ten samples beyond it, {FEW_STALLS} one with fewer than ten "
    "distinct stalls beyond it. –: too few samples to say. The maximum is one event."
)
"""The meaning of the marks in a table of runs."""
FEW_IN_CURVES = f"{FEW_SAMPLES} marks a percentile with fewer than ten samples beyond it; the chart draws it dotted."
"""The meaning of the marks in a table of a chart's curves. There the samples are known, and not always the run."""

HOW_CURVES = (
    "Both axes are logarithmic: each tick to the right is ten times rarer, each tick up ten times longer. A line is "
    "solid where at least ten samples lie beyond it and dotted where fewer do."
)
HOW_VERDICTS = (
    "Each line was measured in pairs of fresh runs, with the change and without, in an order drawn by chance. A line "
    "is called lower or higher only where chance alone is unlikely (5 % over all lines together), and no "
    f"verdict stands on fewer than {ENOUGH_ROUNDS} rounds. The strip shows the ratio with/without and its "
    f"{CONFIDENCE * 100:.0f} % interval; the band around 1 is ±10 %."
)
NOTHING_PROVEN = (
    "Nothing was proven in this session. Single runs differ by chance alone, so this report only describes "
    "them and judges nothing; 'jitter-workshop prove' compares rounds of fresh runs with a change and without it."
)
HOW_IT_COUNTS = (
    "A stall is a time in which a measured thread did not do its work. A percentile counts messages, a stall is one "
    "event: a single long one makes many messages late. Times are shown to three digits; the raw data have all of "
    "them. All moments are in UTC."
)

HEADLINE_STALL_NS = 100_000
"""The threshold of the stalls whose rate stands in a table of runs, in ns."""

_CPU_LISTS = frozenset({"cpus_online", "cpus_allowed", "isolated", "nohz_full"})
_FACTS = {
    "kernel": "kernel",
    "architecture": "architecture",
    "cpu_model": "CPU",
    "hypervisor": "hypervisor",
    "packages": "sockets",
    "smt": "SMT",
    "cpus_online": "CPUs online",
    "cpus_allowed": "CPUs allowed",
    "isolated": "isolated",
    "nohz_full": "tickless",
    "governors": "governors",
    "cpuidle_driver": "idle driver",
    "clocksource": "clock source",
    "realtime_kernel": "real-time kernel",
    "steal_percent": "stolen since boot, %",
    "cpu_max_quota_us": "CPU limit, µs",
    "cpu_max_period_us": "CPU limit's period, µs",
    "on_battery": "on battery",
    "hottest_celsius": "hottest, °C",
    "memlock_limit_bytes": "lockable memory, bytes",
    "boot_id": "boot",
}


def summary(document: ReportDocument) -> Iterator[tuple[str, int | None, int]]:
    """Yield each of the document's first lines as (text, proof, place). A line that is a proof's verdict has the
    proof's index and the place of its subject in the line. Other lines have None and 0."""
    # Two proofs of one subject have a line each, in the order of the proofs.
    waiting = {n: f"{clean(proof.subject, 60)}: " for n, proof in enumerate(document.proofs)}
    for text in document.summary:
        found = next((n for n, subject in waiting.items() if _is_about(text, subject)), None)
        yield text, found, 0 if found is None else text.find(waiting.pop(found))


def _is_about(text: str, subject: str) -> bool:
    at = text.find(subject)
    return at >= 0 and text[:at] in ("Proven of ", "Not proven of ")


def given_back(proof: Proof) -> str:
    """Tell in a sentence, without its full stop, if a proof's changes were given back."""
    if not proof.restored:
        return "Not all of it was given back"
    if proof.subject == PLACEMENT or not proof.changes:
        return "No setting of the host was changed"
    if proof.left_alone:
        return "All of it was given back, and the host has other values since"
    return "All of it was given back at the end"


def written(proof: Proof) -> str:
    """Return the title of a list of a proof's changes."""
    if proof.subject == PLACEMENT:
        return "Where the threads were, without and with it"
    return f"Written in each round: {many(len(proof.changes), 'write')}"


def host_facts(host: HostSummary) -> Iterator[tuple[str, str | None, str]]:
    """Yield (name, value, note) of each fact of a host. The value is None where it is not known, and the note tells
    why. Values are untrusted text."""
    for field in fields(host):
        if field.name in _FACTS:
            yield _FACTS[field.name], _fact(field.name, getattr(host, field.name)), host.notes.get(field.name, "")


def _fact(field: str, value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, tuple):
        return (str(CpuSet(value)) if field in _CPU_LISTS else ", ".join(map(str, value))) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


Pair = tuple[CheckState | None, CheckState | None]
"""A check before and after; None where it was not looked at."""


def checks(before: Snapshot | None, after: Snapshot | None) -> tuple[list[Pair], list[Pair]]:
    """Return the checks that differ in state or value, and the other checks, each in the order of the later snapshot.
    With one snapshot alone none differs."""
    was = {check.id: check for check in before.checks} if before is not None else {}
    now = {check.id: check for check in after.checks} if after is not None else {}
    differ, same = list[Pair](), list[Pair]()
    for ident in dict.fromkeys((*now, *was)):
        pair = was.get(ident), now.get(ident)
        both = before is not None and after is not None
        (differ if both and _telling(pair[0]) != _telling(pair[1]) else same).append(pair)
    return differ, same


def _telling(check: CheckState | None) -> tuple[str, str | None] | None:
    return None if check is None else (check.state, check.value)
