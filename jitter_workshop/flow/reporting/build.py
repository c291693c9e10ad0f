"""Build a report of a session as plain data; ``flow.reporting.formats`` write it and add nothing."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from pathlib import Path

from jitter_workshop import __version__
from jitter_workshop.errors import SessionError
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.reporting import chapters as reporting_chapters
from jitter_workshop.flow.reporting import commands as reporting_commands
from jitter_workshop.flow.reporting import host as reporting_host
from jitter_workshop.flow.reporting import runs as reporting_runs
from jitter_workshop.flow.reporting.causes import culprits
from jitter_workshop.flow.reporting.subject import HERE, Progress, Subject, subject_of, unheard
from jitter_workshop.host.summary import host_line
from jitter_workshop.model.codec import from_plain
from jitter_workshop.model.host import HostSummary
from jitter_workshop.model.report import FORMAT_VERSION, ReportDocument
from jitter_workshop.model.text import clean, many
from jitter_workshop.report.text.proof import headline
from jitter_workshop.session.ids import timestamp
from jitter_workshop.session.store import OpenSession


def build(
    given: Workshop | OpenSession,
    root: Path = HERE,
    *,
    now: datetime.datetime | None = None,
    course_dir: Path | None = None,
    runs: Sequence[str] = (),
    progress: Progress = unheard,
) -> ReportDocument:
    """Return the report of a session. A workshop brings its own host and course; an open session without a workshop
    takes ``root`` and the course in ``course_dir`` (None: the built-in one).

    ``runs``: ids of the runs to report, () for all of the session; with ids, chapters and proofs are left out.
    ``progress``: called during slow work, mainly the explaining of traces. Raises NothingToReport, SessionError,
    LessonError, and what ``progress`` raises.
    """
    subject = subject_of(given, root, course_dir, runs, progress)
    if not subject.runs and not (subject.recorded and subject.walks()):
        raise NothingToReport(subject.session.name)
    charts = reporting_runs.overlays(subject)
    made_for = reporting_runs.roles(subject)
    chapters = reporting_chapters.chapters(subject)
    standing = reporting_host.look(subject)
    session = subject.session
    host_name = clean(session.host, 40)
    return ReportDocument(
        format_version=FORMAT_VERSION,
        title=f"Latency jitter on {host_name or 'an unknown host'}: {clean(session.name, 60)}",
        made_at=timestamp(now),
        tool_version=__version__,
        session_id=session.id,
        session_name=session.name,
        recorded=subject.recorded,
        summary=tuple(_summary(subject, standing)),
        host_line=_host_line(subject),
        hosts=_hosts(subject),
        chapters=chapters,
        overlays=charts,
        proofs=subject.proofs,
        runs=tuple(reporting_runs.reported(r, made_for.get(r.id, ""), subject.drawn.get(r.id)) for r in subject.runs),
        imports=tuple(reporting_runs.import_line(one) for one in subject.imports),
        culprits=culprits(subject),
        events=standing.events,
        before=subject.first,
        after=standing.after,
        still_open=reporting_host.still_open(subject, standing),
        commands=reporting_commands.commands(subject),
        notes=subject.notes,
        changes=standing.changes,
        host_name=host_name,
    )


class NothingToReport(SessionError):
    """Report that the session has no run."""

    title = "Nothing to report yet"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"session {clean(name, 60)} has no runs to report on",
            "measure first: 'jitter-workshop measure', or a chapter of the workshop",
        )


def _summary(subject: Subject, standing: reporting_host.Standing) -> Iterator[str]:
    """Yield the first lines: proofs, runs, chapters and standing settings. They claim no more than the data."""
    if subject.recorded:
        looked = "" if subject.runs else ": it was looked at, and nothing was measured on it"
        yield f"This is about a recorded host, {subject.recorded}{looked}."
    yield from _verdicts(subject)
    yield _measured(subject)
    done = [walk.chapter.title for walk in subject.walks() if walk.progress.done]
    if subject.walks():
        begun = len(subject.walks())
        every = many(len(subject.workshop.course.chapters), "chapter")
        yield f"Of {every} {begun} {'was' if begun == 1 else 'were'} begun, {len(done) or 'none'} done."
    near = [o.near for walk in subject.walks() if (o := walk.outcome()) is not None and o.near is not None]
    if near:
        yield f"Of {many(len(near), 'prediction')} {sum(near) or 'none'} {'was' if sum(near) == 1 else 'were'} near."
    if standing.stands:
        stands = ", ".join(dict.fromkeys(entry.tunable for entry in standing.stands))
        yield f"Still set on this host by this tool: {clean(stands, 300)}."
    elif standing.stands is not None:
        yield "Nothing that this tool has set stands on this host."


def _verdicts(subject: Subject) -> Iterator[str]:
    for proof in subject.proofs:
        verdict, _, text = headline(proof).partition(": ")
        part = "" if proof.complete else f" It ended early, after {len(proof.rounds)} of {proof.planned} rounds."
        left = "" if proof.restored else " Not all of it was given back."
        yield f"{verdict} of {clean(proof.subject, 60)}: {text}.{part}{left}"
    if not subject.proofs and not subject.chosen and len(subject.runs) > 1:
        yield "Nothing is proven here: single runs are described, and only 'prove' compares rounds."


def _measured(subject: Subject) -> str:
    runs = subject.runs
    if not runs:
        return "Nothing was measured."
    first, last = runs[0].started_at[:10], runs[-1].started_at[:10]
    when = f"on {clean(first, 10)}" if first == last else f"from {clean(first, 10)} to {clean(last, 10)}"
    kinds = ", ".join(dict.fromkeys(clean(run.workload, 20) for run in runs))
    proving = sum(run.proof is not None for run in runs)
    told = f"{many(len(runs), 'run')} of {kinds} {when}" + (f", {proving} of them for proofs" if proving else "")
    disturbed, stopped = sum(bool(run.disturbed) for run in runs), sum(not run.complete for run in runs)
    said = [f"{disturbed} of them disturbed by others' tasks"] if disturbed else []
    said += [f"{stopped} stopped early"] if stopped else []
    return "; ".join([told, *said]) + "."


def _hosts(subject: Subject) -> tuple[HostSummary, ...]:
    """Return every host that runs were made on, newest first. Two hosts are the same if their lasting facts are
    equal."""
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
        subject.notes["hosts"] = "no run says what host it was made on"
    return tuple(found.values())


def _host_line(subject: Subject) -> str:
    hosts = _hosts(subject)
    return host_line(hosts[0]) if hosts else "an unknown host"
