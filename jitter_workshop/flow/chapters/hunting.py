"""Run a hunt on a thread of its own, because its noise dies with the thread that started it; keep its outcome."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence

from jitter_workshop.flow.chapters.hunt import Hunt, HuntState
from jitter_workshop.model.course import TREATED
from jitter_workshop.model.noise import NOISES
from jitter_workshop.model.session import ChapterProgress, HuntOutcome
from jitter_workshop.model.text import clean, many

MOST_KEPT = 100
"""Most hunts that a chapter's progress remembers, the newest."""


def kept(progress: ChapterProgress, outcome: HuntOutcome) -> ChapterProgress:
    """Return the progress with one more hunt that ended."""
    return dataclasses.replace(progress, hunts=(*progress.hunts, outcome)[-MOST_KEPT:])


def anew(progress: ChapterProgress) -> ChapterProgress:
    """Return the progress as another hunt begins: runs beside the noise before do not belong to this one, and leave
    their slots (they stay in the session)."""
    runs = {slot: run for slot, run in progress.runs.items() if slot not in ("again", TREATED)}
    return dataclasses.replace(progress, runs=runs, weighed={})


def caught(hunts: Sequence[HuntOutcome]) -> bool | None:
    """Return True if any of them was named; None where none ended."""
    return any(outcome.named for outcome in hunts) if hunts else None


class Hiding:
    """Keep a hunt of a chapter alive, from its beginning to :meth:`close`. Raises what ``begin`` raises."""

    hunt: Hunt

    def __init__(self, begin: Callable[[], Hunt], chapter_id: str = "") -> None:
        self.chapter_id = chapter_id
        self._begun = threading.Event()
        self._over = threading.Event()
        self._error: BaseException | None = None
        # The screen and the thread of a run both ask for the noise's state: one at a time.
        self._asking = threading.Lock()
        # A daemon thread: the noise ends with the process, and exit must not wait for the thread.
        self._thread = threading.Thread(target=self._live, args=(begin,), name="hunt", daemon=True)
        self._thread.start()
        self._begun.wait()
        if self._error is not None:
            self._thread.join()
            raise self._error

    @property
    def state(self) -> HuntState:
        with self._asking:
            return self.hunt.state

    def close(self) -> None:
        """End the noise; return once it has ended."""
        self._over.set()
        self._thread.join()

    def _live(self, begin: Callable[[], Hunt]) -> None:
        try:
            self.hunt = begin()
        except BaseException as error:
            self._error = error
            return
        finally:
            self._begun.set()
        with self.hunt:
            self._over.wait()


def remembered(hunts: Sequence[HuntOutcome], most: int = 6) -> str:
    """Return the hunts that ended, in a sentence, newest first; "" for none."""
    if not hunts:
        return ""
    caught = sum(outcome.named for outcome in hunts)
    told = [_outcome(outcome) for outcome in reversed(hunts)][:most]
    more = f"; and {len(hunts) - most} before" if len(hunts) > most else ""
    return f"{caught} of {many(len(hunts), 'hidden noise')} caught: {'; '.join(told)}{more}."


def _outcome(outcome: HuntOutcome) -> str:
    title = next((noise.title for noise in NOISES if noise.id == outcome.kind), clean(outcome.kind, 30))
    stopped = "stopped, and " if outcome.stopped else "kept away, and " if outcome.cured else ""
    if outcome.named:
        return f"{title} ({stopped}named at {tries(outcome.wrong_answers)})"
    return f"{title} ({stopped}not named)"


def tries(wrong_answers: int) -> str:
    """Return the try at which a noise was named."""
    return f"try {wrong_answers + 1}" if wrong_answers else "the first try"
