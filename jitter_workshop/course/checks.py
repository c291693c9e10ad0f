"""Compute which marks a learner has earned, and find mistakes in a lesson's marks, effects and guess.

A mark depends on the chapter's checks, on the learner's runs, and on the state of the tunables. No mark requires a
lower latency, because a noisy host may not show an improvement. But a mark may require a figure that has the same value
on every host after the change. For example, a bound thread is moved 0 times.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

from jitter_workshop.course.table import KeyPath
from jitter_workshop.model.course import Chapter, Check, Measurement
from jitter_workshop.model.record import picked
from jitter_workshop.model.run import UNSTEADY, Run, bare_run
from jitter_workshop.model.spec import Placement
from jitter_workshop.stats.figures import KnownRun, counts_alone, figure_with_id

_NO_CHANGE = ("slot", "label", "preset", "duration_s")
"""Fields of a measurement that do not count as a change: a chapter's two measurements may differ in them."""
_WRITES_ETC = re.compile(r"(?:tee|>)\s*(?:-a )?/etc/")
"""A pattern for a command that writes a file below /etc."""

NOT_SET = " (not set)"
"""The end of a run's label if the chapter's settings were not in effect when the run began."""


def chapter_marks(
    chapter: Chapter, runs: Mapping[str, Run], settled: Mapping[str, bool] | None = None
) -> dict[str, bool]:
    """Return the marks of a chapter: mark → True if the learner has earned it.

    The mark ``curve`` is always in the result. If no check names ``curve``, one finished run for each measurement of
    the chapter earns this mark. A second run counts only if it was measured with the chapter's settings. The mark
    ``setting`` is in the result only if a check names it.

    - ``runs``: slot of the measurement → run.
    - ``settled``: tunable id → True if the tunable needs no improvement on this host. None if checks of tunables do not
      count.
    """
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
    """Return True if the second run was measured with the chapter's settings.

    Return True in three cases:

    - During the run, this tool had applied a setting of the chapter.
    - ``settled`` is True for each tunable of the chapter, and the run does not say that it began without them.
    - The chapter has no tunables, or there is no second run.
    """
    run = runs.get("again")
    if run is None or not chapter.tunables or _applied_in(chapter, run):
        return True
    return bool(settled) and all((settled or {}).values()) and not without_change(chapter, run)


def without_change(chapter: Chapter, run: Run) -> bool:
    """Return True if a run began without the settings of its chapter.

    The run itself keeps both signs of this: it lists no setting of the chapter as applied by this tool, and its label
    ends with NOT_SET. The label has no such end if the host had the wanted values without this tool. The host's present
    values do not count. Return False for a chapter without tunables.
    """
    return bool(chapter.tunables) and not _applied_in(chapter, run) and NOT_SET in run.label


def _applied_in(chapter: Chapter, run: Run) -> bool:
    """Return True if this tool had applied a setting of the chapter during the run."""
    ids = {word.partition("=")[0] for word in chapter.tunables}
    return any(one.get("id") in ids for one in run.applied)


def _holds(chapter: Chapter, check: Check, runs: Mapping[str, Run]) -> bool:
    run, asked = runs.get(check.slot or ""), chapter.measurement(check.slot or "")
    if run is None or asked is None or not run.complete or UNSTEADY in run.notes or not _as_asked(asked, run):
        return False
    if check.figure is not None and not _shows(check, run):
        return False
    mode = run.placement.mode
    # CPUs that the learner chose are as good as those chosen for them.
    return all(
        wanted in (None, mode) or (wanted == "auto" and mode == "chosen")
        for wanted in (check.placement, asked.placement)
    )


def _shows(check: Check, run: Run) -> bool:
    """Return True if the figure that ``check`` names is at most ``check.at_most`` in this run. Also return True if the
    run does not have the figure.
    """
    value = figure_with_id(check.figure or "").of(KnownRun(run))
    return value is None or value <= (check.at_most or 0.0)


def _as_asked(asked: Measurement, run: Run) -> bool:
    """Return True if a run has the workload and the options that the lesson asks for. The learner may choose another
    length and noise. On a host with one usable CPU, ``spin`` may replace ``ring``."""
    # If the process may use only one CPU, spin replaces the ring.
    if run.workload != asked.workload and (asked.workload, run.workload) != ("ring", "spin"):
        return False
    sched = f"fifo:{asked.sched_priority}" if asked.sched_priority else "other"
    paced = run.workload != "ring" or run.pacing == (asked.pacing or "spin")
    busy = run.workload != asked.workload or (run.duty, run.memory or "none") == (asked.duty, asked.memory)
    return paced and busy and (run.sched, run.lock or "none") == (sched, asked.lock)


@dataclasses.dataclass(frozen=True, slots=True)
class Flaw:
    """Hold one flaw that the author of a lesson has to correct. ``where``: the path of the key in the lesson's file."""

    where: KeyPath
    message: str


def flaws(chapter: Chapter) -> tuple[Flaw, ...]:
    """Return the flaws in a chapter's marks, effects, guess and by-hand commands.

    A mark has a flaw if it cannot be earned, or if it needs no work. A change has a flaw if the lesson names no effect.
    It also has a flaw if no load runs beside it and the lesson gives no reason.
    An effect has a flaw if it is a time and no count replaces it on emulated machines. A guess has a flaw if no run can
    decide it. A by-hand command has a flaw if the lesson gives neither a check nor a reason. It also has a flaw if
    it writes a file below /etc, and its check is only a tunable's value. The assessments of tunables are assumed to be
    right; ``flow.chapters.lessoncheck`` tests them.
    """
    runs: dict[str, Run] = {m.slot: finished_run(m) for m in chapter.measurements}
    tunables = {check.tunable for check in chapter.checks if check.tunable is not None}
    without = chapter_marks(chapter, {}, dict.fromkeys(tunables, False))
    found = [
        Flaw((), f"the learner earns the mark '{mark}' without any work") for mark, earned in without.items() if earned
    ]
    for n, check in enumerate(chapter.checks):
        alone = dataclasses.replace(chapter, checks=(check,))
        measured = chapter.measurement(check.slot or "")
        if not chapter_marks(alone, runs, dict.fromkeys(tunables, True))[check.mark]:
            how = measured.placement if measured else "nothing"
            message = f"the check asks for placement '{check.placement}', but '{check.slot}' is measured with '{how}'"
            found.append(Flaw(("check", n, "placement"), f"{message}, so no learner can earn this mark"))
        if check.mark == "setting" and chapter.changes == "nothing":
            found.append(Flaw(("check", n, "mark"), "a chapter that changes nothing cannot have the mark 'setting'"))
    if chapter.changes != "nothing" and not any(check.mark == "setting" for check in chapter.checks):
        message = f"this chapter changes {chapter.changes}, but no [[check]] has the mark 'setting'"
        found.append(Flaw(("changes",), f"{message}, so no learner can earn this mark"))
    what = chapter.changes if chapter.changes != "nothing" else differing(chapter)
    if what and len(chapter.measurements) > 1 and chapter.shows is None:
        message = f"this chapter changes {what}, so it needs a [shows] with the figure that the change moves"
        found.append(Flaw(("changes",), message))
    if what and len(chapter.measurements) > 1 and chapter.company is None and not chapter.without_company:
        message = f"this chapter changes {what}, but has no [company]: a quiet host may show no effect. Add a load"
        found.append(Flaw(("changes",), f"{message}, or write in 'without_company' why there is none"))
    shows = chapter.shows
    if shows is not None and not counts_alone(figure_with_id(shows.figure)) and not (shows.counted or shows.uncounted):
        message = (
            f"{shows.figure} is a time, and times mean nothing on an emulated machine: name a figure that is a count"
        )
        found.append(
            Flaw(
                ("shows", "figure"),
                f"{message} in [shows.counted], or write in 'uncounted' why there is no such figure",
            )
        )
    task = chapter.prediction
    if task is not None and task.kind == "choice" and task.by is None:
        message = "no run can decide this guess: name in 'by' what decides it, or ask it as a [[recall]] question"
        found.append(Flaw(("prediction", "question"), message))
    elif task is not None and task.by == "factor" and shows is None:
        message = 'no run can decide this guess: by = "factor" asks about the figure of [shows], which is missing'
        found.append(Flaw(("prediction", "by"), message))
    for n, one in enumerate(chapter.by_hand):
        if not (one.reads or one.check or one.unchecked):
            message = "the workshop does not know how to check this command: write 'reads = true', or a 'check'"
            found.append(Flaw(("by_hand", n, "command"), f"{message}, or 'unchecked' with a reason"))
        elif one.check and ":" not in one.check and _WRITES_ETC.search(one.command):
            message = "the value in effect cannot tell what a file below /etc contains"
            found.append(Flaw(("by_hand", n, "check"), f"{message}: use holds:PATH=LINE or file:PATH"))
    if chapter.changes == "tunables" and "apply" not in chapter.steps:
        found.append(Flaw(("steps",), "this chapter sets tunables but has no step 'apply' to apply them"))
    return tuple(found)


def differing(chapter: Chapter) -> str:
    """Return the names of the fields in which a chapter's two measurements differ.

    For example, return ``sched_priority, memory``. A different length does not count. Return "" if no field differs.
    Return "" also for a hunt: a chapter in which the learner must find a hidden noise.
    """
    first, second = chapter.measurement("measure"), chapter.measurement("again")
    if first is None or second is None or chapter.hunt:
        return ""
    names = [field.name for field in dataclasses.fields(Measurement) if field.name not in _NO_CHANGE]
    return ", ".join(name for name in names if getattr(first, name) != getattr(second, name))


def finished_run(measurement: Measurement) -> Run:
    """Return an invented, finished run for ``measurement``, without any figures."""
    return bare_run(
        **picked(measurement, "label", "workload", "preset", "noise", "duty", "memory", "lock"),
        id="made-up",
        pacing=measurement.pacing or "spin",
        sched=f"fifo:{measurement.sched_priority}" if measurement.sched_priority else "other",
        placement=Placement(measurement.placement),  # type: ignore[arg-type]  # the loader checked it
    )
