"""Members of a class at work, for the soaks: students with real clients, real short runs and sessions of their own, and
a teacher who now and then steps in."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jitter_workshop.agent.client import AgentClient
from jitter_workshop.agent.transport import SocketLink
from jitter_workshop.agent.turns import turn_queue
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.errors import BusyError, WorkshopError
from jitter_workshop.flow.classes import posting
from jitter_workshop.flow.measuring.measure import MeasurementStopped, measure_run
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.model.run import RunStarted, SilentObserver
from jitter_workshop.model.session import ChapterProgress
from jitter_workshop.session.store import OpenSession, SessionStore
from tests.classonatree import TEACHER, log, uid_of
from tests.tuned_tree import HOT

STUDENTS = 40
TURN_S = 12.0
SILENCE_S = 3.0
"""Both short, so that turns that end by them are many in ten minutes."""
HEART_S = 4.0
"""A lease of the clients, who are heard five times as often."""
RUN = MeasureRequest(workload="spin", duration_s=0.2, placement="none")
LAST_POST_S = 60.0


@dataclasses.dataclass(frozen=True)
class School:
    """Hold where students find everything. ``homes``: of them all; ``ends``: by the monotonic clock; ``shown``: digests
    of the changes that ``words`` make."""

    homes: Path
    agent_socket: str
    file: Path
    ends: float
    words: tuple[str, ...]
    shown: tuple[str, ...]

    def home(self, number: int) -> Path:
        return self.homes / f"s{number:02d}"

    def furnish(self, number: int) -> None:
        """A home that belongs to the student."""
        home = self.home(number)
        home.mkdir(parents=True, exist_ok=True)
        os.chown(home, uid_of(number), uid_of(number))


def student(school: School, number: int, seed: str) -> None:
    """Waits for the turn, changes something, measures, keeps, gives back, posts; again and again. At the end what the
    board does not have yet is posted."""
    os.environ["XDG_STATE_HOME"] = os.environ["XDG_CACHE_HOME"] = str(school.home(number))
    chance = random.Random(seed)
    with SessionStore().current_or_create(f"s{number:02d}", "lab") as session:
        while time.monotonic() < school.ends:
            try:
                one_turn(school, number, session, chance)
            except (WorkshopError, OSError) as error:
                log(school.file, who=number, what="refused", why=str(error)[:200])
            why = posted(session)
            log(school.file, who=number, what="not posted" if why else "posted", why=why)
            time.sleep(chance.uniform(0.0, 0.5))
        until = time.monotonic() + LAST_POST_S
        while (why := posted(session)) and time.monotonic() < until:
            time.sleep(0.2)
        log(school.file, who=number, what="ends", why=why)


def posted(session: OpenSession) -> str:
    """Post, and wait for the answer: why it did not arrive, or ""."""
    poster = posting.Poster(session)
    poster.wanted()
    return poster.close(LAST_POST_S)


def one_turn(school: School, number: int, session: OpenSession, chance: random.Random) -> None:
    people = [f"s{(number + 1) % STUDENTS:02d}"] if chance.random() < 0.2 else []
    patience_s = chance.uniform(0.1, 5.0) if chance.random() < 0.1 else 1e6
    with AgentClient(SocketLink(school.agent_socket)) as agent:
        try:
            granted = agent.take_turn(people, patience_s)
        except BusyError:
            log(school.file, who=number, what="leaves")
            return
        log(school.file, who=number, what="has", number=granted.number, people=people, group=granted.group)
        if chance.random() < 0.5:
            agent.apply(school.words, HOT, school.shown, lease=True)
        measured(school, number, session, agent, granted.number)
        if chance.random() < 0.02:
            time.sleep(TURN_S + 1.0)  # has done all and keeps the turn: it ends by time
        if chance.random() < 0.7:
            agent.turn("give")


class InTurn(SilentObserver):
    """Ask before the first block, with the child already there, if this turn still lasts. A student that was stopped as
    the turn came may find it gone. A child that was born in the turn ends with it."""

    def __init__(self, school: School, number: int, agent: AgentClient, turn: int) -> None:
        self._school, self._number, self._agent, self._turn = school, number, agent, turn

    def started(self, event: RunStarted) -> None:
        self._agent.need_turn()
        log(self._school.file, who=self._number, what="measures", number=self._turn)


def measured(school: School, number: int, session: OpenSession, agent: AgentClient, turn: int) -> None:
    """One run, kept and entered as the next that a chapter has room for."""
    complete, run = False, None
    agent.need_turn()
    try:
        run = measure_run(RUN, session, InTurn(school, number, agent, turn), CancelToken(), turn_held=True)
        complete = run.complete
    except MeasurementStopped as stopped:
        run = stopped.run
        raise
    finally:
        ident = run.id if run is not None else None
        log(school.file, who=number, what="measured", number=turn, complete=complete, run=ident)
    if not complete:
        return
    state = session.session
    count = sum(len(progress.runs) for progress in state.chapters.values())
    chapter = f"chapter-{count // 2:02d}"
    progress = state.chapters.get(chapter, ChapterProgress())
    slot = "without" if count % 2 == 0 else "with"
    chapters = {**state.chapters, chapter: dataclasses.replace(progress, runs={**progress.runs, slot: run.id})}
    session.save(dataclasses.replace(state, chapters=chapters, current_chapter=chapter))
    log(school.file, who=number, what="finished", run=run.id)


def teacher(school: School, seed: str) -> None:
    """Freezes and thaws, ends a turn, holds the machine for a moment; seldom."""
    chance = random.Random(seed)
    while time.monotonic() < school.ends - 10.0:
        time.sleep(min(chance.uniform(5.0, 15.0), max(school.ends - 10.0 - time.monotonic(), 0.0)))
        do = chance.choice(("freeze", "end", "hold"))
        try:
            with AgentClient(SocketLink(school.agent_socket)) as agent:
                if do == "freeze":
                    agent.turn("freeze")
                    time.sleep(1.0)
                    agent.turn("thaw")
                elif do == "end":
                    agent.turn("end")
                else:
                    granted = agent.take_turn((), 600.0)
                    log(school.file, who=-1, what="has", number=granted.number, people=[], group=granted.group)
                    time.sleep(1.0)
            log(school.file, who=-1, what=do)
        except (WorkshopError, OSError) as error:
            log(school.file, who=-1, what="refused", why=str(error)[:200])
    # The class goes on, also if a kill cut an action short.
    for _ in range(100):
        with contextlib.suppress(WorkshopError, OSError), AgentClient(SocketLink(school.agent_socket)) as agent:
            agent.turn("thaw")
            return
        time.sleep(0.2)


def known_names(patch: pytest.MonkeyPatch) -> None:
    """s00 to s39 are in the group of the class, without an entry in this machine's files."""
    import pwd

    getpwnam = pwd.getpwnam

    def by_name(name: str) -> Any:
        if len(name) == 3 and name[0] == "s" and name[1:].isdigit():
            return SimpleNamespace(pw_name=name, pw_uid=uid_of(int(name[1:])))
        return SimpleNamespace(pw_name=name, pw_uid=TEACHER) if name == "ada" else getpwnam(name)

    patch.setattr(pwd, "getpwnam", by_name)
    uids = frozenset(uid_of(n) for n in range(STUDENTS))
    patch.setattr(turn_queue, "uids_of", lambda group: uids)
