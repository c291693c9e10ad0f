"""What several verbs that read a session share."""

from __future__ import annotations

import argparse

from jitter_workshop.errors import SessionError
from jitter_workshop.session.store import OpenSession, SessionStore


def open_session(args: argparse.Namespace) -> OpenSession:
    """The session of ``--session``, or the current one. Raises SessionError where there is none."""
    store = SessionStore()
    if args.session is not None:
        return store.open(args.session)
    session = store.current()
    if session is None:
        raise SessionError("there is no session yet", "start the workshop, or run 'jitter-workshop measure'")
    return session
