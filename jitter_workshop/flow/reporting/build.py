"""Build a report of a session as plain data, without a layout. The modules in the package ``report`` lay out the
report."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator

from jitter_workshop import __version__
from jitter_workshop.bench.foreign_activity import NOTICED_PERCENT
from jitter_workshop.flow.chapters.cause_times import times_of_causes
from jitter_workshop.flow.chapters.hunt import past_hunts
from jitter_workshop.flow.chapters.session_context import key_of
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.measuring.comparing import compare_runs, other_changed_settings, strayed_settings
from jitter_workshop.flow.reporting.causes import causes_of_runs
from jitter_workshop.flow.reporting.commands import commands_that_repeat
from jitter_workshop.flow.reporting.host import HostPart, host_facts, still_open
from jitter_workshop.flow.reporting.runs import heat_maps, overlays, reported_runs, screenings
from jitter_workshop.flow.reporting.subject import ReportSubject
from jitter_workshop.host.summary import host_line
from jitter_workshop.model.codec import from_plain
from jitter_workshop.model.evidence import Part
from jitter_workshop.model.host import EMULATED, HostSummary
from jitter_workshop.model.matrix import Matrix
from jitter_workshop.model.report import FORMAT_VERSION, ReportDocument, ReportedChapter, ReportedDiagnosis
from jitter_workshop.model.session import Guess
from jitter_workshop.model.text import ID, LABEL, WORD, clean, day, many
from jitter_workshop.report.proof_words import proof_headline
from jitter_workshop.session.ids import timestamp
from jitter_workshop.stats.comparison import import_line
from jitter_workshop.stats.scale import nice_ns

MOST_STANDING = 300
"""The largest length of the summary's list of settings that this tool still changes."""
_MOST_STRANGE = 12
"""The most chapters of another course that a note names."""


def build_report(subject: ReportSubject, *, now: datetime.datetime | None = None) -> ReportDocument:
    """Return the report about a subject, dated ``now``. Traces and histograms are read, and nothing is written. Raise
    SessionError if a file cannot be read, and the errors of ``subject.progress``.
    """
    # The parts add notes and drawn curves to a copy: the given subject stays as it is.
    subject = dataclasses.replace(subject, notes=dict(subject.notes), drawn={})
    charts = overlays(subject)
    chapters = _chapters(subject)
    standing = host_facts(subject)
    session, hosts = subject.session, _hosts(subject)
    host_name = clean(session.host, ID)
    return ReportDocument(
        format_version=FORMAT_VERSION,
        title=f"Latency jitter on {host_name or 'an unknown host'}: {clean(session.name, LABEL)}",
        made_at=timestamp(now),
        tool_version=__version__,
        session_id=session.id,
        session_name=session.name,
        recorded=subject.recorded,
        summary=tuple(_summary(subject, standing)),
        host_line=host_line(hosts[0]) if hosts else "an unknown host",
        hosts=hosts,
        chapters=chapters,
        overlays=charts,
        proofs=subject.proofs,
        runs=reported_runs(subject),
        imports=tuple(import_line(one) for one in subject.imports),
        culprits=causes_of_runs(subject),
        events=standing.events,
        before=subject.first,
        after=subject.after,
        still_open=still_open(subject, standing),
        commands=commands_that_repeat(subject),
        notes=subject.notes,
        changes=standing.changes,
        host_name=host_name,
        heats=heat_maps(subject),
        matrix=_matrix(subject),
        screenings=screenings(subject),
    )


LIMIT = f"{NOTICED_PERCENT:g} % of a CPU or more, as the kernel counts it without a trace"
"""The words for the tasks that disturb a run: a trace also finds tasks that had ended, or that used less."""


def _summary(subject: ReportSubject, standing: HostPart) -> Iterator[str]:
    """Yield the sentences of the report's summary. They are about proofs, runs and chapters, and about settings that
    this tool still changes on the host."""
    yield from _verdicts(subject)
    yield from _measured(subject)
    done = [walk.chapter.title for walk in subject.walks if walk.progress.done]
    if subject.walks:
        begun = len(subject.walks)
        every = many(len(subject.course.chapters), "chapter")
        yield f"Of {every} {begun} {'was' if begun == 1 else 'were'} begun, {len(done) or 'none'} finished."
    outcomes = (walk.guess.outcome() for walk in subject.walks)
    grades = [grade for one in outcomes if one is not None and (grade := one.grade) is not None]
    if grades:
        right, beside, wrong = (grades.count(grade) for grade in ("right", "beside", "wrong"))
        yield f"Guesses: {right or 'none'} right{f', {beside} near' if beside else ''}, {wrong or 'none'} wrong."
    if standing.stands:
        stands = ", ".join(dict.fromkeys(entry.tunable for entry in standing.stands))
        yield f"This tool still changes these settings of this host: {clean(stands, MOST_STANDING)}."
    elif standing.stands is not None:
        yield "No change of this tool is in place on this host."


def _verdicts(subject: ReportSubject) -> Iterator[str]:
    for proof in subject.proofs:
        verdict, _, text = proof_headline(proof).partition(": ")
        part = "" if proof.complete else f" It ended early, after {len(proof.rounds)} of {proof.planned} rounds."
        left = "" if proof.restored else " Not all settings were restored."
        yield f"{verdict} of {clean(proof.subject, LABEL)}: {text}.{part}{left}"
    for screening in screenings(subject):
        left = "" if screening.restored else " Not all settings were restored."
        yield f"Screening of {many(len(screening.settings), 'setting')}: {screening.text}{left}"
    if not (subject.proofs or subject.screenings) and not subject.chosen and len(subject.runs) > 1:
        yield "This report has no proof: it describes single runs, and only 'prove' compares rounds."


def _measured(subject: ReportSubject) -> Iterator[str]:
    """Yield the sentence on the runs. Yield no sentence for a recorded host without runs and proofs, because the
    report's first paragraph says that nothing was measured."""
    runs = subject.runs
    if not runs:
        if subject.proofs or subject.screenings:
            yield "This tool's own benchmark was not run."
        return
    first, last = day(runs[0].started_at), day(runs[-1].started_at)
    when = f"on {first}" if first == last else f"from {first} to {last}"
    kinds = ", ".join(dict.fromkeys(clean(run.workload, WORD) for run in runs))
    proving = sum(run.proof is not None for run in runs)
    what = "proofs and screenings" if subject.screenings else "proofs"
    told = f"{many(len(runs), 'run')} of {kinds} {when}" + (f", {proving} of them for {what}" if proving else "")
    disturbed, stopped = sum(bool(run.disturbed) for run in runs), sum(not run.complete for run in runs)
    said = [f"{disturbed} of them disturbed by other tasks ({LIMIT})"] if disturbed else []
    said += [f"{stopped} stopped early"] if stopped else []
    yield "; ".join([told, *said]) + "."


def _hosts(subject: ReportSubject) -> tuple[HostSummary, ...]:
    """Return each host on which runs were made, the newest first. Two runs were made on the same host if their names,
    kernels, processors and isolated CPUs are equal."""
    found: dict[tuple[object, ...], HostSummary] = {}
    for run in reversed(subject.runs):
        if not run.host:
            continue
        try:
            host = from_plain(HostSummary, run.host)
        except ValueError:
            continue
        same = (host.name, host.kernel, host.cpu_model, host.hypervisor, host.cpus_online, host.isolated)
        found.setdefault(same, host)
    if not found and not subject.elsewhere:
        return (subject.context.host,)
    if not found:
        subject.notes["hosts"] = "no run names its host"
    return tuple(found.values())


def _matrix(subject: ReportSubject) -> Matrix | None:
    """Return the session's newest complete matrix. If no matrix is complete, return the newest one. Return None if
    there is no matrix, or if the user picked runs."""
    if subject.chosen:
        return None
    found = sorted(subject.context.handle.matrices(), key=lambda one: one.complete)
    return dataclasses.replace(found[-1], host={}) if found else None


# -- chapters ----------------------------------------------------------------------------------------------------------


def _chapters(subject: ReportSubject) -> tuple[ReportedChapter, ...]:
    """Return the chapters that were begun, in the order of the course. If the session has chapters of another course,
    add a note about them to ``subject``."""
    known = {key_of(subject.course.id, chapter.id) for chapter in subject.course.chapters}
    strange = [clean(key, LABEL) for key in subject.session.chapters if key not in known]
    if strange and not subject.chosen:
        more = len(strange) - _MOST_STRANGE
        names = ", ".join(strange[:_MOST_STRANGE]) + (f" and {more} more" if more > 0 else "")
        subject.notes["chapters"] = (
            f"chapters of another course are not shown (name that course with --course): {names}"
        )
    return tuple(_chapter(subject, walk) for walk in subject.walks)


def _chapter(subject: ReportSubject, walk: ChapterWalk) -> ReportedChapter:
    chapter, progress = walk.chapter, walk.progress
    first, second = (subject.run(progress.runs.get(slot)) for slot in ("measure", "again"))
    comparison, text = None, ""
    if first is not None and second is not None:
        causes = times_of_causes(walk.runs.seen(first), walk.runs.seen(second), chapter)
        view = compare_runs(first, second, from_due_time=walk.runs.from_due_time, causes=causes)
        # If all settings were good and nothing had to be applied, a note that nothing was applied would mislead.
        # A change of other settings is always told.
        had_to_apply = second.applied or not progress.marks.get("setting")
        strayed = strayed_settings(chapter, first, second) if had_to_apply else ()
        other = other_changed_settings(chapter, first, second)
        said = filter(None, [*strayed, other, view.headline, walk.noise.both_ways()])
        comparison, text = view.comparison, " ".join(said)
    return ReportedChapter(
        id=chapter.id,
        title=chapter.title,
        question=chapter.prediction.question if chapter.prediction is not None else "",
        guess=_guess(walk, progress.prediction),
        outcome=walk.guess.outcome(),
        runs={slot: ident for slot, ident in progress.runs.items() if subject.run(ident) is not None},
        other_runs={slot: ident for slot, ident in progress.other_runs.items() if subject.run(ident) is not None},
        comparison=comparison,
        comparison_text=text,
        setting=progress.marks.get("setting", False) if chapter.sets else None,
        curve=progress.marks.get("curve", False),
        done=progress.done,
        rehearsed=not progress.runs and (subject.session.recorded or (not subject.elsewhere and walk.host.rehearsed)),
        learnt=tuple(filter(None, (past_hunts(progress.hunts), *(chapter.learnt if progress.done else ())))),
        diagnosis=_diagnosis(walk),
        measures=chapter.measures,
        skipped=walk.diagnosis.skipped,
        emulated=walk.runs.emulated if first is None else first.mark == EMULATED,
        asks=walk.diagnosis.question,
    )


def _diagnosis(walk: ChapterWalk) -> ReportedDiagnosis | None:
    """Return the learner's answer to the question which task took the time, with the evidence. Return None if the
    learner has not answered."""
    known = walk.diagnosis.known()
    if known is None:
        return None
    kept, seen, judged = known
    if seen is None or judged is None:
        # The trace was removed, or its causes are listed in another way since: the answer stays as it was kept.
        kind, _, name = kept.choice.partition(":")
        return ReportedDiagnosis(kept.run, "", Part(kind, name, 0), kept.right, None, 0.0, 0, 0, asks=walk.chapter.asks)
    chosen, most = judged.chosen, judged.most
    return ReportedDiagnosis(
        run=kept.run,
        source=seen.source,
        chosen=Part(chosen.kind, chosen.name, chosen.total_ns or 0),
        right=judged.right,
        most=None if most is None else Part(most.kind, most.name, most.total_ns or 0),
        share=judged.share,
        stalled_ns=seen.stalled_ns,
        unknown_ns=seen.unknown_ns,
        recorded=seen.recorded,
        threads=seen.threads,
        asks=seen.asks,
        ended_ns=seen.ended_ns,
    )


def _guess(walk: ChapterWalk, guess: Guess | None) -> str:
    """Return a learner's guess in words; "" if there is none."""
    task = walk.chapter.prediction
    if guess is None or task is None:
        return ""
    if task.kind == "mark":
        value = guess.value_ns
        return f"{nice_ns(value)} at p{guess.percentile or task.percentile}" if value is not None else ""
    given = next((a.text for a in task.answers if a.id == guess.choice), None)
    return given if given is not None else "an answer that is no longer in the lesson"
