"""Prepare a session for its report: save in it what has to be found out for the report."""

from __future__ import annotations

import contextlib

from jitter_workshop.errors import SessionError
from jitter_workshop.flow.proving.proof_recovery import update_proofs
from jitter_workshop.flow.proving.screening_run import update_screenings
from jitter_workshop.flow.reporting.causes import causes_of_runs
from jitter_workshop.flow.reporting.subject import ReportSubject
from jitter_workshop.session import history


def prepare_report(subject: ReportSubject) -> ReportSubject:
    """Save in the session what was found out for a report, and return the report's subject. ``build`` makes the report
    of this subject. Raise the errors of ``subject.progress``.

    - The explanations of the reported traces. They save seconds of work at the next report.
    - The host's status, and the state of killed proofs and screenings. A later report needs them if it is made on
      another host or after a reboot. On a recorded host, they are not saved.

    A session that is only read is not changed.
    """
    session = subject.context.handle
    if session.read_only:
        return subject
    causes_of_runs(subject, keep=True)
    if not subject.root.recorded:
        update_proofs(session, subject.root)
        update_screenings(session, subject.root)
        if subject.after is not None and "after" not in subject.notes:
            with contextlib.suppress(SessionError):
                history.keep_last(session.folder, subject.after)
    return subject
