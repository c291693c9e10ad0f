"""Compare two runs of a chapter, and describe the result in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jitter_workshop.flow.measuring.known_reason import reason_of, sentences
from jitter_workshop.flow.measuring.unchanged import unchanged
from jitter_workshop.model.change import IRQ_AFFINITY, IRQ_HERE
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.effect import CauseTime, Relation
from jitter_workshop.model.run import HUNTED, INTENDED, UNSTEADY, Run
from jitter_workshop.model.spec import PACED
from jitter_workshop.model.text import MOST_ENTRIES
from jitter_workshop.model.walk import CompareView
from jitter_workshop.stats.figures import FROM_DUE_TIME, KnownRun

_HOST_FACTS = (
    "kernel",
    "boot_id",
    "governors",
    "isolated",
    "nohz_full",
    "cpus_online",
    "clocksource",
    "cpu_max_quota_us",
)
"""Facts of the host. If one of them differs between two runs, the runs are not alike."""


def compare_runs(
    a: Run,
    b: Run,
    *,
    from_due_time: bool = False,
    asked: str | None = None,
    causes: Sequence[CauseTime] = (),
) -> CompareView:
    """Return the comparison of two runs by their latencies.

    The headline of the comparison tells the known reason why the runs cannot be compared (``known_reason.reason_of``).
    Without one, and if both runs were made in the same way, it says how far the figures differ without a change.
    ``from_due_time``: True to name this clock, because the chapter sets it beside transit. ``asked``: the percentile by
    which the chapter judges. ``causes``: the time of each cause in both runs; () if a run has no trace.
    """
    from jitter_workshop.stats.comparison import compare

    due = all(INTENDED in run.histograms for run in (a, b))
    comparison = compare(a, b, INTENDED, FROM_DUE_TIME if from_due_time else "") if due else compare(a, b)
    found = relation(a, b)
    reason = reason_of(found, KnownRun(a), KnownRun(b), causes) if a.id != b.id else None
    if reason is not None:
        return CompareView(comparison, sentences(reason, found), found, reason=reason)
    if found == "alike":
        return CompareView(comparison, unchanged(KnownRun(a), KnownRun(b), causes, asked), found)
    return CompareView(comparison, comparison.text, found)


def strayed_settings(chapter: Chapter, first: Run, second: Run) -> tuple[str, ...]:
    """Return notes on the chapter's own settings that were wrong in its two runs. They must be in effect only in the
    second run. Of all other settings :func:`other_changed_settings` tells."""
    ids = {word.partition("=")[0] for word in chapter.tunables}
    stood, stands = ({str(one.get("id", "")) for one in run.applied} for run in (first, second))
    notes = []
    if early := sorted(ids & stood):
        notes.append(
            f"{', '.join(early)} {'was' if len(early) == 1 else 'were'} applied already when the first run was made."
        )
    if ids and not ids & stands:
        notes.append("The second run was made without this chapter's settings.")
    return tuple(notes)


def other_changed_settings(chapter: Chapter, first: Run, second: Run) -> str:
    """Return a sentence on this tool's settings that changed between a chapter's two runs and are not the chapter's; ""
    if there are none. The learner, another workshop or a verb may have changed them."""
    ids = {word.partition("=")[0] for word in chapter.tunables}
    stood, stands = ({str(one.get("id", "")): one.get("value") for one in run.applied} for run in (first, second))
    if IRQ_AFFINITY in ids and IRQ_HERE not in stands:
        # The chapter itself has the interrupt arrive during its first run alone.
        stood.pop(IRQ_HERE, None)
    others = sorted((stood.keys() | stands.keys()) - ids)
    others = [ident for ident in others if stood.get(ident, "-") != stands.get(ident, "-")]
    if not others:
        return ""
    changed = "; ".join(f"{i} ({_set_to(i, stood)}, then {_set_to(i, stands)})" for i in others[:MOST_ENTRIES])
    return f"Between the runs this tool's own settings changed: {changed}."


def _set_to(ident: str, applied: Mapping[str, str | None]) -> str:
    """Return a tunable's value during a run as a phrase, such as ``applied`` or ``not applied``. ``applied``: tunable
    id → value, for the tunables that this tool had applied. None means the value that the tunable's check calls
    good."""
    return (applied[ident] or "applied") if ident in applied else "not applied"


def relation(a: Run, b: Run) -> Relation:
    """Return the relation of two runs, which limits what a comparison of them may claim.

    - ``unsteady``: settings changed during a run.
    - ``hunted``: a hidden noise, which the learner must find, ran during a run.
    - ``alike``: both runs were made in the same way.
    - ``changed``: the runs were made in different ways.
    """
    if UNSTEADY in a.notes or UNSTEADY in b.notes:
        return "unsteady"
    if HUNTED in a.notes or HUNTED in b.notes:
        return "hunted"
    return "alike" if same_state(a, b) else "changed"


def chapter_relation(chapter: Chapter, a: Run, b: Run) -> Relation:
    """Return the relation of a chapter's two runs, as :func:`relation` does. Return ``strayed`` in place of ``changed``
    or ``hunted`` if settings that the chapter does not change were changed between the runs."""
    found = relation(a, b)
    return "strayed" if found in ("changed", "hunted") and other_changed_settings(chapter, a, b) else found


def same_state(a: Run, b: Run) -> bool:
    """Return True if two runs were made in the same way. Then no change of ours makes them differ. Return False if
    settings changed during a run. Also return False if a run had a hidden noise, which the learner must find. The CPUs
    of the two runs are compared only if the user chose them: otherwise the scheduler chose them."""

    def state(run: Run) -> tuple[object, ...]:
        placement = run.placement
        cpus = (placement.producer, placement.accumulator, placement.journaller, placement.sampler)
        applied = tuple(sorted((k, v) for entry in run.applied for k, v in entry.items()))
        return (
            run.workload,
            run.pacing if run.workload == "ring" else None,
            run.interval_ns if run.workload in PACED else None,
            run.sched,
            run.duty,
            run.pause,
            run.memory,
            run.lock,
            run.noise,
            None if placement.mode == "none" else cpus,
            applied,
            run.notes.get(UNSTEADY),
            tuple(str(run.host.get(fact)) for fact in _HOST_FACTS),
        )

    hunted = HUNTED in a.notes or HUNTED in b.notes
    return not hunted and UNSTEADY not in b.notes and state(a) == state(b)
