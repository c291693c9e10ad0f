"""Prove that a chapter's marks can be earned, and only by the work that it asks for: a pure function of the lesson.

The runs are made up here and never leave this module; they hold no more than :func:`~.checks.marks` reads.
"""

from __future__ import annotations

import dataclasses

from jitter_workshop.course.checks import marks
from jitter_workshop.course.toml_lines import KeyPath
from jitter_workshop.model.course import Chapter, Measurement
from jitter_workshop.model.run import FORMAT_VERSION, Clock, PlacementRecord, Run, Stalls


@dataclasses.dataclass(frozen=True, slots=True)
class Flaw:
    """Hold a mark that cannot work. ``where``: the key in the lesson's file."""

    where: KeyPath
    message: str


def flaws(chapter: Chapter) -> tuple[Flaw, ...]:
    """Return every mark of ``chapter`` that cannot be earned, or that is earned without any work. The tunables'
    assessments are assumed to be right: ``flow.chapters.lessoncheck`` asks recorded hosts about them."""
    runs: dict[str, Run] = {m.slot: finished_run(m) for m in chapter.measurements}
    tunables = {check.tunable for check in chapter.checks if check.tunable is not None}
    without = marks(chapter, {}, dict.fromkeys(tunables, False))
    found = [Flaw((), f"the mark '{mark}' is earned without any work") for mark, earned in without.items() if earned]
    for n, check in enumerate(chapter.checks):
        alone = dataclasses.replace(chapter, checks=(check,))
        measured = chapter.measurement(check.slot or "")
        if not marks(alone, runs, dict.fromkeys(tunables, True))[check.mark]:
            how = measured.placement if measured else "nothing"
            message = f"asks for placement '{check.placement}', but '{check.slot}' is measured with '{how}'"
            found.append(Flaw(("check", n, "placement"), f"{message}: the mark can never be earned"))
        if check.mark == "setting" and chapter.changes == "nothing":
            found.append(Flaw(("check", n, "mark"), "this chapter changes nothing, so it has no mark 'setting'"))
    if chapter.changes != "nothing" and not any(check.mark == "setting" for check in chapter.checks):
        message = f"this chapter changes {chapter.changes}, and no [[check]] has the mark 'setting'"
        found.append(Flaw(("changes",), f"{message}: it can never be earned"))
    without_hands = [step for step in ("plan", "apply") if step not in chapter.steps]
    if chapter.changes == "tunables" and without_hands:
        missing = " and ".join(f"'{step}'" for step in without_hands)
        found.append(Flaw(("steps",), f"this chapter sets tunables but has no step {missing}: nothing applies them"))
    return tuple(found)


def finished_run(measurement: Measurement) -> Run:
    """Return a made-up run as ``measurement`` asks for it: it has ended well and measured nothing."""
    return Run(
        format_version=FORMAT_VERSION,
        id="made-up",
        label=measurement.label,
        workload=measurement.workload,
        pacing=measurement.pacing or "spin",
        interval_ns=0,
        preset=measurement.preset,
        started_at="",
        duration_s=0.0,
        sched=f"fifo:{measurement.sched_priority}" if measurement.sched_priority else "other",
        duty=measurement.duty,
        noise=measurement.noise,
        clock=Clock("made-up", 0.0, 0, None, None, None),
        placement=PlacementRecord(measurement.placement, None, None, None, None, (), (), ""),
        histograms={},
        blocks=(),
        stalls=Stalls(0, 0, 0.0, 0.0),
        blocked_publishes=None,
        negative_deltas=0,
        threads=(),
        interrupts=None,
        softirqs=None,
        steal_ns=None,
        steal_resolution_ns=None,
        core_hz=None,
        throttled_periods=None,
        mlocked=False,
        complete=True,
        disturbed=(),
        host={},
        applied=(),
    )
