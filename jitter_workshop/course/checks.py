"""Compute the marks that a chapter has earned, only from its checks, the runs in its slots and the assessments of its
tunables. An improvement is never required: a noisy host may not show one."""

from __future__ import annotations

from collections.abc import Mapping

from jitter_workshop.model.course import Chapter, Check, Measurement
from jitter_workshop.model.run import UNSTEADY, Run


def marks(chapter: Chapter, runs: Mapping[str, Run], settled: Mapping[str, bool] | None = None) -> dict[str, bool]:
    """Return mark → earned. ``curve`` is always there (without checks of its own: a finished run in every slot);
    ``setting`` only where the chapter sets something. ``settled``: id of a tunable → True if its own assessment finds
    nothing to improve; tunables that this host lacks are left out. None = not asked, and ``setting`` is then left out
    for a chapter of tunables."""
    earned: dict[str, bool] = {}
    for check in chapter.checks:
        if check.tunable is not None:
            if settled is None or check.tunable not in settled:
                continue
            holds = settled[check.tunable]
        else:
            holds = _holds(chapter, check, runs) and (check.slot != "again" or _in_state(chapter, runs, settled))
        earned[check.mark] = earned.get(check.mark, True) and holds
    if "curve" not in earned:
        slots = [m.slot for m in chapter.measurements]
        held = bool(slots) and all(_holds(chapter, Check("curve", slot), runs) for slot in slots)
        earned["curve"] = held and ("again" not in slots or _in_state(chapter, runs, settled))
    return earned


def _in_state(chapter: Chapter, runs: Mapping[str, Run], settled: Mapping[str, bool] | None) -> bool:
    """Return True if the second run was measured with the chapter's settings: set by this tool, or already present on
    the host."""
    ids = {word.partition("=")[0] for word in chapter.tunables}
    run = runs.get("again")
    if not ids or run is None:
        return True
    stood = any(one.get("id") in ids for one in run.applied)
    return stood or (bool(settled) and all((settled or {}).values()))


def _holds(chapter: Chapter, check: Check, runs: Mapping[str, Run]) -> bool:
    run, asked = runs.get(check.slot or ""), chapter.measurement(check.slot or "")
    if run is None or asked is None or not run.complete or UNSTEADY in run.notes or not _as_asked(asked, run):
        return False
    mode = run.placement.mode
    # CPUs that the learner chose are as good as those chosen for them.
    return all(
        wanted in (None, mode) or (wanted == "auto" and mode == "chosen")
        for wanted in (check.placement, asked.placement)
    )


def _as_asked(asked: Measurement, run: Run) -> bool:
    """Return True if a run measured what the lesson asks for: the same work, asked for in the same way. Its length is
    the learner's choice, and so is a noise where the lesson has none."""
    # Where the process may use only one CPU, spin replaces the ring.
    if run.workload != asked.workload and (asked.workload, run.workload) != ("ring", "spin"):
        return False
    sched = f"fifo:{asked.sched_priority}" if asked.sched_priority else "other"
    paced = run.workload != "ring" or run.pacing == (asked.pacing or "spin")
    busy = run.workload != asked.workload or run.duty == asked.duty
    return paced and busy and run.sched == sched and asked.noise in (None, run.noise)
