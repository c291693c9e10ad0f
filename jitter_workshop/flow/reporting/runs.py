"""Collect a report's runs with their purposes, and its charts with their curves."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from jitter_workshop.errors import SessionError
from jitter_workshop.flow.chapters.course_summary import bought_steps, comparable_curves, words_of
from jitter_workshop.flow.measuring.comparing import chapter_relation
from jitter_workshop.flow.measuring.curves import imported_curves, published_curves, told_apart_by_clock
from jitter_workshop.flow.measuring.isolated_set import NOTE
from jitter_workshop.flow.reporting.subject import ReportSubject
from jitter_workshop.model.course import SLOTS, TREATED, Chapter
from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.host import MARK_NOTE
from jitter_workshop.model.proof import Proof
from jitter_workshop.model.record import made_of
from jitter_workshop.model.report import HeatMap, Overlay, ReportedRun, ReportedScreening, WaitedLatencies
from jitter_workshop.model.run import HUNTED, INTENDED, UNSTEADY, Run, of_transit
from jitter_workshop.model.spec import KINDS
from jitter_workshop.model.text import ID, LABEL, REASON, SENTENCE, WORD, clean, many, minute
from jitter_workshop.report.screening_words import screening_sentence
from jitter_workshop.stats.curve import percentile_curve
from jitter_workshop.stats.figures import FROM_DUE_TIME
from jitter_workshop.stats.heat import LEAST_BLOCKS, Heat, loud_blocks, shows_bursts
from jitter_workshop.stats.histogram import add_counts, new_histogram
from jitter_workshop.stats.sample_size import standings
from jitter_workshop.stats.scale import nice_ns
from jitter_workshop.stats.screening import screening_result

MOST_HISTOGRAMS = 80
"""The charts of proofs add up at most this number of histograms, newest first, so that a report takes only seconds."""
_SUMS = (
    "The first curve holds all messages of the runs without the change. The second curve holds all messages of the "
    "runs with the change. Runs differ, so the curves do not show how certain the difference is. The verdict compares "
    "rounds."
)
MOST_HEATS = 12
"""Greatest number of heat maps of runs with bursts in a report: each has thousands of counts. The newest such runs
have them."""
NO_HEATS = (
    "No run here has a heat map. Runs of proofs and screenings get none, and each other run needs histograms of its "
    "single blocks."
)
_NAMED_BLOCKS = 10
LATEST = 6
"""Greatest number of runs in a chart of runs without a chapter. In a chart with more curves a reader could not
distinguish them."""
ONE_RUN = "There is only one run, so nothing is compared."
LONGEST = 5
"""Number of a run's longest stalls in a report; the raw data have all listed stalls."""
_TOLD = ("complete", "disturbed", UNSTEADY, HUNTED, NOTE, "evidence", "cpu_max", "pm_qos", "mlocked", MARK_NOTE)
"""The notes of a run that must be shown wherever its figures are shown."""


def roles(subject: ReportSubject) -> dict[str, str]:
    """Return run id → the purpose of the run. Only runs of chapters, proofs and screenings have a purpose."""
    found: dict[str, list[str]] = {}
    for chapter in subject.course.chapters:
        progress = subject.context.progress(chapter.id)
        for slot, ident in (*progress.runs.items(), *progress.other_runs.items()):
            found.setdefault(ident, []).append(f"{clean(chapter.title, ID)} · {clean(slot, WORD)}")
    for proof in subject.proofs:
        for number, one in enumerate(proof.rounds, 1):
            for side, ident in (("without", one.without), ("with", one.with_it)):
                found.setdefault(ident, []).append(f"proof of {clean(proof.subject, LABEL)}, round {number}, {side}")
    for screening in subject.screenings:
        for part, pairs in (("choose", screening.pairs), ("prove", screening.proofs)):
            for number, pair in enumerate(pairs, 1):
                for place, run in (("first", pair.first), ("second", pair.second)):
                    told = f"screening, part '{part}', pair {number}, {place} run"
                    found.setdefault(run.side.run, []).append(told)
    return {ident: ", ".join(told) for ident, told in found.items()}


def reported_runs(subject: ReportSubject) -> tuple[ReportedRun, ...]:
    """Return the runs of a report. Call this after :func:`overlays`, which notes the curves that charts show."""
    made_for = roles(subject)
    return tuple(_reported(run, made_for.get(run.id, ""), subject.drawn.get(run.id)) for run in subject.runs)


def _reported(run: Run, role: str, curve: PercentileCurve | None) -> ReportedRun:
    """Return a run in report form, with its longest stalls and most important notes. ``role``: the purpose of the run.
    ``curve``: the curve of the run's main histogram, if a chart shows the run."""
    made_for = role or ("made for a proof or a screening, but not used for its result" if run.proof else "")
    longest = sorted(run.stalls.worst, key=lambda stall: (-stall.duration_ns, stall.start_ns))[:LONGEST]
    told = (*_TOLD, "steal_ns") if run.steal_ns is None else _TOLD
    return made_of(
        ReportedRun,
        run,
        role=made_for,
        placement=run.placement.mode,
        histogram=run.main_summary,
        standings=standings(of_transit(run)),
        stalls=dataclasses.replace(run.stalls, worst=tuple(longest)),
        applied=tuple(words_of(run.applied)),
        curve=curve,
        proof=run.proof or "",
        notes=tuple(clean(run.notes[key], SENTENCE) for key in told if key in run.notes),
        with_waits=_waited(run),
    )


def _waited(run: Run) -> WaitedLatencies | None:
    summary = run.histograms.get(INTENDED)
    return None if summary is None else WaitedLatencies(FROM_DUE_TIME, summary, standings(run))


def screenings(subject: ReportSubject) -> tuple[ReportedScreening, ...]:
    """Return the screenings with their results, oldest first."""
    made = []
    for one in subject.screenings:
        found = screening_result(one)
        made.append(
            made_of(
                ReportedScreening,
                one,
                measure=found.measure if found is not None else "",
                text=screening_sentence(one, found),
                ranked=found.ranked if found is not None else (),
                chosen=tuple(one.settings[n] for n in one.chosen),
            )
        )
    return tuple(made)


def overlays(subject: ReportSubject) -> tuple[Overlay, ...]:
    """Return the charts, in this order: proofs, the whole course, each chapter, other runs by workload, published
    curves, imported curves."""
    ours = [*_proofs(subject), *_course(subject), *_chapters(subject), *_others(subject)]
    charts = [*ours, *_published(subject), *_imports(subject)]
    return tuple(dataclasses.replace(chart, curves=told_apart(chart.curves)) for chart in charts if chart.curves)


def heat_maps(subject: ReportSubject) -> tuple[HeatMap, ...]:
    """Return heat maps for the newest of the runs with bursts of long values, and for the run with the longest value.
    The heat map of the oldest run comes first. Runs of proofs get no heat map. A run without saved histograms of its
    blocks gets none, either. If no run gets one, ``subject.notes`` gets the reason."""
    free = [run for run in subject.runs if run.proof is None]
    longest = {run.id: top for run in free if (found := run.latency) is not None and (top := found.max)}
    slowest_first = sorted(longest, key=lambda ident: -longest[ident])
    worst = next((ident for ident in slowest_first if _heat(subject, ident) is not None), None)
    bursting = [run.id for run in free if shows_bursts(run.blocks)]
    wanted = {*bursting[-MOST_HEATS:], worst}
    made = []
    for run in free:
        if run.id in wanted and (heat := _heat(subject, run.id)) is not None:
            bursts = run.id in bursting
            text = _of_bursts(run) if bursts else _of_longest(run, longest[run.id])
            made.append(
                HeatMap(run.id, heat.starts_s, heat.end_s, heat.block_s, heat.counts, text, bursts, run.id == worst)
            )
    if subject.runs and not made:
        subject.notes["heats"] = NO_HEATS
    return tuple(made)


def _heat(subject: ReportSubject, ident: str) -> Heat | None:
    """Return a run's heat map; None if the histograms of the run's blocks cannot be read."""
    run = subject.run(ident)
    try:
        return subject.context.runs.heat(run) if run is not None else None
    except SessionError:
        return None


def _of_longest(run: Run, longest_ns: int) -> str:
    """Return sentences on the run with the longest value, if its longest values do not come in bursts."""
    loud = len(loud_blocks(run.blocks))
    why = (
        f"It has {many(len(run.blocks), 'block')}, too few to tell whether long values come in bursts."
        if len(run.blocks) < LEAST_BLOCKS
        else f"Its long values do not come in bursts: {loud or 'none'} of its {len(run.blocks)} blocks "
        f"{'have' if loud > 1 else 'has'} a longest time of ten times the median block's or more."
    )
    return f"Of the runs that can have a heat map, this one has the longest value: {nice_ns(longest_ns)}. {why}"


def _of_bursts(run: Run) -> str:
    """Return sentences on the number and start times of a run's slowest blocks."""
    loud = loud_blocks(run.blocks)
    begins = [f"{block.start_ns / 1e9:.3g} s" for block in loud]
    more = f" and {len(begins) - _NAMED_BLOCKS} more" if len(begins) > _NAMED_BLOCKS else ""
    return (
        f"In {len(loud)} of {len(run.blocks)} blocks, the longest time is at least ten times as long as in the median "
        f"block. These blocks begin at {', '.join(begins[:_NAMED_BLOCKS])}{more}."
    )


def told_apart(curves: Sequence[PercentileCurve]) -> tuple[PercentileCurve, ...]:
    """Return the curves. If a name was already used, a number is added to it, such as ``spin (2)``."""
    seen: dict[str, int] = {}
    found = []
    for curve in curves:
        seen[curve.label] = seen.get(curve.label, 0) + 1
        again = seen[curve.label]
        found.append(curve if again == 1 else dataclasses.replace(curve, label=f"{curve.label} ({again})"))
    return tuple(found)


def _proofs(subject: ReportSubject) -> Iterator[Overlay]:
    """Yield a chart for each proof with a finished round, the oldest proof first. If there are many proofs, only the
    newest proofs get a chart."""
    left, chosen = MOST_HISTOGRAMS, list[tuple[Proof, list[Run], list[Run]]]()
    for proof in reversed(subject.proofs):
        without, with_it = _runs_of(subject, proof, "without"), _runs_of(subject, proof, "with_it")
        left -= len(without) + len(with_it)
        if left < 0:
            break
        if without and with_it:
            chosen.append((proof, without, with_it))
    for proof, without, with_it in reversed(chosen):
        try:
            curves = (_sum(subject, without, "without"), _sum(subject, with_it, "with"))
        except (SessionError, ValueError):
            # A run's file may be damaged or edited. The session reports that, and the verdict does not need the file.
            continue
        yield Overlay(
            f"Proof of {clean(proof.subject, LABEL)}, {minute(proof.started_at)} UTC", _SUMS, curves, change=True
        )


def _runs_of(subject: ReportSubject, proof: Proof, side: Literal["without", "with_it"]) -> list[Run]:
    return [run for one in proof.rounds if (run := subject.run(getattr(one, side))) is not None]


def _sum(subject: ReportSubject, runs: Sequence[Run], side: str) -> PercentileCurve:
    whole = new_histogram()
    for run in runs:
        add_counts(whole, subject.context.handle.histogram(run.id, run.main_histogram))
    maxima = [h.max for run in runs if (h := run.main_summary) is not None and h.max is not None]
    summed = percentile_curve(whole, f"{side} · {many(len(runs), 'run')}", max_ns=max(maxima, default=None))
    return dataclasses.replace(summed, origin=runs[0].mark if runs else "")


def _course(subject: ReportSubject) -> Iterator[Overlay]:
    if subject.chosen:
        return
    steps = bought_steps(subject.walks, subject.context)
    shown = comparable_curves(steps, 0)
    if len(shown) > 1:
        _note_drawn(subject, [steps[n].run for n in shown])
        curves = tuple(dataclasses.replace(steps[n].shown.curve, label=clean(steps[n].name, LABEL)) for n in shown)
        text = (
            "The first curve is the first run of the course. Each other curve is the second run of a chapter, if it "
            "can be compared with the first run. Single runs are described, not judged."
        )
        yield Overlay("From first to last", text, curves)


def _chapters(subject: ReportSubject) -> Iterator[Overlay]:
    for walk in subject.walks:
        made = [runs for runs in (walk.progress.runs, walk.progress.other_runs) if runs]
        shown = False
        for runs in made:
            found = {slot: run for slot in (*SLOTS, TREATED) if (run := subject.run(runs.get(slot))) is not None}
            alone = _curves(subject, found.values())
            after_change = not walk.runs.repeats and len(alone) == 2
            curves = tuple(one.curve for one in walk.runs.curves_of(found))
            which = "its run after the change" if after_change else "its later runs"
            both = f"The chart shows the chapter's first run and {which}. Single runs are described, not judged."
            if curves:
                besides = "" if len(made) < 2 else f", {_beside(subject, runs)}"
                title, text = f"{clean(walk.chapter.title, LABEL)}{besides}", ONE_RUN if len(alone) == 1 else both
                judged = after_change and not walk.runs.from_due_time and _judged(walk.chapter, *found.values())
                yield Overlay(title, text, curves, change=judged)
                shown = True
        if shown:
            continue
        recorded, source = (
            walk.runs.recorded_curves("compare") if subject.root.recorded or not subject.elsewhere else ((), "")
        )
        if recorded:
            text = f"Nothing was measured here: these curves were {clean(source, REASON)}."
            yield Overlay(
                f"{clean(walk.chapter.title, LABEL)}, on a recording", text, tuple(one.curve for one in recorded)
            )


def _judged(chapter: Chapter, *runs: Run) -> bool:
    """Return True if a chapter has two runs, and nothing but its change made them differ. ``runs``: the chapter's runs
    in the order of their slots. A chart may then fill the space between their curves as better or worse."""
    return len(runs) == 2 and chapter_relation(chapter, *runs) == "changed"


def _beside(subject: ReportSubject, runs: Mapping[str, str]) -> str:
    """Return the noise of a chapter's runs in words, such as ``without a noise``."""
    noise = next((run.noise for ident in runs.values() if (run := subject.run(ident)) is not None), None)
    return f"beside the noise {clean(noise, WORD)}" if noise else "without a noise"


def _others(subject: ReportSubject) -> Iterator[Overlay]:
    """Yield a chart for each workload. A chart shows the newest runs of its workload that belong to no chapter and no
    proof. If the user picked runs, the charts also show older runs and runs of proofs."""
    both = (runs for walk in subject.walks for runs in (walk.progress.runs, walk.progress.other_runs))
    taken = {ident for runs in both for ident in runs.values()}
    free = [run for run in subject.runs if run.id not in taken and (subject.chosen or run.proof is None)]
    for workload in dict.fromkeys(run.workload for run in free):
        alike = [run for run in free if run.workload == workload]
        shown = alike if subject.chosen else alike[-LATEST:]
        less = f" The chart shows the newest {len(shown)} of {len(alike)} runs." if len(shown) < len(alike) else ""
        title = KINDS[workload].title if workload in KINDS else clean(workload, ID)
        text = f"Single runs are described, not judged.{less}" if len(shown) > 1 else ONE_RUN
        yield Overlay(title, text, _curves(subject, shown))


def _published(subject: ReportSubject) -> Iterator[Overlay]:
    ring = [run for run in subject.runs if run.workload == "ring" and run.pacing == "spin" and run.proof is None]
    theirs = published_curves()
    if subject.chosen or not ring or not theirs:
        return
    pair = [ring[0], ring[-1]] if len(ring) > 1 else ring
    text = (
        "This chart shows transit times of a laptop, published in 2015, and the first and the newest run here. "
        "Machine, kernel and year differ, so use the laptop's times only as a scale, not for a comparison."
    )
    _note_drawn(subject, pair)
    shown = told_apart_by_clock((*subject.context.runs.curves(pair), *theirs))
    yield Overlay("Next to a laptop of 2015", text, tuple(one.curve for one in shown))


def _imports(subject: ReportSubject) -> Iterator[Overlay]:
    if not subject.imports:
        return
    theirs = tuple(one.curve for one in imported_curves(subject.imports[-LATEST:]))
    newest = {run.workload: run for run in subject.runs if run.proof is None}
    text = (
        "Imported curves are marked with the tool that measured them. You can look at them, but no comparison "
        "or verdict uses them."
    )
    yield Overlay("Next to other tools", text, (*_curves(subject, newest.values()), *theirs))


def _curves(subject: ReportSubject, runs: Iterable[Run | None]) -> tuple[PercentileCurve, ...]:
    """Return the curves of ``runs``. Note in ``subject`` that they are drawn."""
    known = tuple(run for run in runs if run is not None)
    _note_drawn(subject, known)
    return tuple(one.curve for one in subject.context.runs.curves(known))


def _note_drawn(subject: ReportSubject, runs: Iterable[Run]) -> None:
    """Note in ``subject`` that a chart shows these runs, each with the curve of its main histogram."""
    curves = (subject.context.runs.curve(run, transit=True) for run in runs)
    subject.drawn |= {one.key: one.curve for one in curves if one is not None}
