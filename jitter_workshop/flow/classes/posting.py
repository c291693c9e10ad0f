"""Post a class member's work to the board, but never during a measurement.

The program sends a post after each run and after each step. If the member does nothing, it sends a post every two
minutes. Each post has the whole state, so a lost post is replaced by the next one. A separate thread makes the posts,
so that nothing else waits for the board.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.classroom.client import SILENT, connect_to_board
from jitter_workshop.errors import SessionError, WorkshopError
from jitter_workshop.flow.measuring import background_gate
from jitter_workshop.flow.measuring.measure import TakeTurn
from jitter_workshop.flow.turns.classhost import HoldsTurn, read_turns
from jitter_workshop.model.board import (
    MAX_CHAPTERS,
    MAX_POINTS,
    MAX_SCENARIOS,
    MAX_TEXT,
    Posted,
    PostedChapter,
    PostedRun,
)
from jitter_workshop.model.run import Run, apart_from_proofs
from jitter_workshop.model.session import ChapterProgress
from jitter_workshop.model.text import USER, clean
from jitter_workshop.model.turn import MAX_PEOPLE
from jitter_workshop.session.store import OpenSession

SOON_S = 1.0
"""Seconds from a step to its post, so that several steps in a row are one post."""
STILL_HERE_S = 120.0
"""Seconds between posts while nothing is done: they show the board which members are stuck and which have left."""
AGAIN_S = 30.0
"""Seconds from a post that failed to the next try. A step of the learner begins the next try earlier."""
LEAVING_S = 3.0
"""Greatest number of seconds that a closing workshop waits for the last post."""

Points = tuple[tuple[float, int], ...]
PointsByRun = dict[str, Points]
"""The points of each curve, by the id of its run."""
Send = Callable[[Posted, int], None]
"""The type of a function that posts a member's work to the board. The second argument is a file descriptor: the
function ends early when this descriptor becomes readable. The function raises WorkshopError on failure.
"""


def send(work: Posted, stop: int) -> None:
    """Post a member's work to the board of this class host. ``stop``: a descriptor that ends the wait when it becomes
    readable. Raise HostError if the board cannot be reached. Raise WaitStopped when ``stop`` becomes readable.
    """
    with connect_to_board(stop) as board:
        board.post(work)


class Poster:
    """Post a session, from the first call of :meth:`wanted` until :meth:`close`. ``trouble``: a sentence on why the
    last post failed, or ""."""

    def __init__(
        self, session: OpenSession, send: Send = send, here: background_gate.BackgroundGate = background_gate.HERE
    ) -> None:
        self.trouble = ""
        self._session = session
        self._send = send
        self._quiet = here
        self._curves: PointsByRun = {}
        self._people: tuple[str, ...] = ()
        self._asked = self._done = 0
        self._leaving = False
        self._stopped = False
        self._thread: threading.Thread | None = None

    def wanted(self) -> None:
        """Ask for a post soon, because something was done. Return at once."""
        self._asked += 1
        if self._thread is None and not self._leaving:
            self._thread = threading.Thread(target=self._work, name="posting", daemon=True)
            self._thread.start()
        self._quiet.nudge()

    def note_team(self) -> None:
        """Remember the members of this user's team. Call this during the turn, because only then does the turn's state
        name them."""
        turn = read_turns().turn
        if turn is not None and turn.uid == os.geteuid():
            self._people = tuple(clean(name, USER) for name in turn.people)[:MAX_PEOPLE]

    @contextlib.contextmanager
    def with_team(
        self, turn: TakeTurn, wait_s: float, cancel: CancelToken, queued: Callable[[str], None]
    ) -> Iterator[HoldsTurn | None]:
        """Hold the turn inside the context, and remember the team of the turn. Yield a function. When the turn is over,
        each call of this function raises TurnOver. On a host without turns, yield None. ``turn``: the function that
        takes the turn.
        """
        with turn(wait_s, cancel, queued) as still:
            self.note_team()
            yield still

    def close(self, wait_s: float = LEAVING_S) -> str:
        """Post the last state if the board does not have it yet, and end the posting thread. Wait at most ``wait_s``
        seconds. Return the reason why the post failed; "" if the board has the last state."""
        self._leaving = True
        self._quiet.nudge()
        if self._thread is not None:
            self._thread.join(wait_s)
            if self._thread.is_alive():
                return SILENT
        return self.trouble if self._done < self._asked else ""

    def _work(self) -> None:
        while True:
            self._quiet.wait(lambda: self._leaving, SOON_S)
            asked = self._asked
            if self._leaving and self._done == asked:
                return
            posted_now = self._post()
            if posted_now:
                self._done = asked
            elif self._leaving:
                return
            if not self._stopped:
                limit_s = STILL_HERE_S if posted_now else AGAIN_S
                self._quiet.wait(partial(self._more_than, asked), limit_s)

    def _more_than(self, asked: int) -> bool:
        return self._leaving or self._asked > asked

    def _post(self) -> bool:
        """Post the present state. Return False if the post failed, or if a measurement stopped it."""
        reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._stopped = False

        def stop() -> None:
            self._stopped = True
            with contextlib.suppress(OSError):
                os.write(writer, b"!")

        try:
            with self._quiet.beside(stop):
                self.note_team()
                work = posted(self._session, self._people, self._curves, lambda: self._stopped)
                if not self._stopped:
                    self._send(work, reader)
            self.trouble = self.trouble if self._stopped else ""
        except WorkshopError as error:
            self.trouble = self.trouble if self._stopped else error.sentence()
            return False
        finally:
            os.close(reader)
            os.close(writer)
        return not self._stopped


def posted(
    session: OpenSession,
    people: tuple[str, ...] = (),
    curves: PointsByRun | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Posted:
    """Return a session in the form that is posted to the board.

    It has progress, guesses, and runs with curves. The runs are the runs of the chapters, and the two newest runs
    that belong to no chapter. The number of hints that the member has read is posted. The text of the hints is not
    posted.

    - ``curves``: the curves that were read before; newly read curves are added to them.
    - ``stopped``: if this function returns True, the remaining runs are left out.
    """
    state = session.session
    chapters = dict(list(state.chapters.items())[:MAX_CHAPTERS])
    found = curves if curves is not None else {}
    every = {run.id: run for run in session.runs()}
    of_chapters = {
        run_id: (ident, slot) for ident, progress in chapters.items() for slot, run_id in progress.runs.items()
    }
    own = [run for run in apart_from_proofs(tuple(every.values())) if run.id not in of_chapters][-2:]
    chosen = [run for ident in of_chapters if (run := every.get(ident)) is not None] + own
    runs = []
    for run in sorted(chosen, key=lambda run: run.started_at)[-2 * MAX_CHAPTERS :]:
        if stopped():
            break
        if run.id not in found:
            found[run.id] = _points(session, run)
        chapter, slot = of_chapters.get(run.id, ("", ""))
        runs.append(_run(run, chapter, slot, found[run.id]))
    current = state.current_chapter
    at = next((key for key in (f"{state.course}/{current}", current) if key in chapters), None)
    return Posted(
        session=clean(state.name, MAX_TEXT),
        people=people,
        chapter=None if at is None else clean(at, MAX_TEXT),
        step=clean(chapters[at].step, MAX_TEXT) if at is not None else "",
        chapters=tuple(_chapter(ident, progress) for ident, progress in chapters.items()),
        runs=tuple(runs),
        scenarios=_scenarios(),
    )


def _scenarios() -> tuple[str, ...]:
    """Return the ids of the scenarios that this user has solved in practice machines on this host."""
    from jitter_workshop.flow.scenarios.playing import solved_in
    from jitter_workshop.practice.running import kept_folder
    from jitter_workshop.practice.shape import SHAPES

    solved = [clean(one.scenario, MAX_TEXT) for shape in SHAPES for one in solved_in(kept_folder(shape))]
    return tuple(dict.fromkeys(solved))[:MAX_SCENARIOS]


def _chapter(ident: str, progress: ChapterProgress) -> PostedChapter:
    return PostedChapter(
        id=clean(ident, MAX_TEXT),
        step=clean(progress.step, MAX_TEXT),
        done=progress.done,
        setting=progress.marks.get("setting", False),
        curve=progress.marks.get("curve", False),
        hints=min(progress.hints, 100),
        prediction=progress.prediction,
    )


def _points(session: OpenSession, run: Run) -> Points:
    """Return the points of a run's curve that have enough samples; () if there are none."""
    try:
        curve = session.curve(run, run.latency_histogram)
    except SessionError:
        return ()
    solid = [(point.percentile, point.value_ns) for point in curve.points if point.solid and point.percentile < 100]
    return tuple(solid[:MAX_POINTS])


def _run(run: Run, chapter: str, slot: str, points: Points) -> PostedRun:
    return PostedRun(
        id=clean(run.id, MAX_TEXT),
        label=clean(run.label, MAX_TEXT),
        chapter=clean(chapter, MAX_TEXT),
        slot=clean(slot, MAX_TEXT),
        workload=run.workload,
        at=clean(run.started_at, MAX_TEXT),
        points=points,
        stolen_ns_per_second=run.stalls.stolen_ns_per_second,
        mark=run.mark,
    )
