"""Prepare a session for its report: save in it what has to be found out for the report."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from jitter_workshop.errors import SessionError
from jitter_workshop.flow.attribution import unheard
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.proving.proof_recovery import update_proofs
from jitter_workshop.flow.proving.screening_run import update_screenings
from jitter_workshop.flow.reporting.causes import culprits
from jitter_workshop.flow.reporting.subject import HERE, BuildProgress, ReportSubject, subject_of
from jitter_workshop.session import history
from jitter_workshop.session.store import OpenSession


def prepare(
    given: Workshop | OpenSession,
    root: Path = HERE,
    *,
    course_dir: Path | None = None,
    runs: Sequence[str] = (),
    progress: BuildProgress = unheard,
) -> ReportSubject:
    """Return the subject of a report, and save in the session what was found out for it. ``build`` makes the report of
    this subject. Arguments and errors are those of ``subject_of``, and the errors of ``progress``.

    - The explanations of the reported traces. They save seconds of work at the next report.
    - The host's status, and the state of killed proofs and screenings. A later report needs them if it is made on
      another host or after a reboot. On a recorded host, they are not saved.

    A session that is only read is not changed.
    """
    subject = subject_of(given, root, course_dir=course_dir, runs=runs, progress=progress)
    session = subject.context.handle
    if session.read_only:
        return subject
    culprits(subject, keep=True)
    if not subject.root.recorded:
        update_proofs(session, subject.root)
        update_screenings(session, subject.root)
        if subject.after is not None and "after" not in subject.notes:
            with contextlib.suppress(SessionError):
                history.keep_last(session.folder, subject.after)
    return subject
