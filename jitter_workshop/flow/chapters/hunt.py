"""Hide one noise, which the learner has to name and may cure; store the outcomes.

Each hunt has its own thread, because a noise ends with the thread that started it. The learner must not see the kind of
noise before the answer:

- The noise's process gets its order through a pipe.
- The threads of the noise's process have the same name for every kind of noise.
- The kind is not logged and not stored.
- If the noise's process refuses an order, the message of this process is not shown.
"""

from __future__ import annotations

import dataclasses
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from jitter_workshop.bench.noisechild import NoiseChild
from jitter_workshop.bench.noiseorder import NoiseOrder, known, order_for
from jitter_workshop.errors import HostError, SessionError, UsageError
from jitter_workshop.flow.chapters import cure
from jitter_workshop.flow.chapters.session_context import SessionContext
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.measuring.placement_plan import placed_on
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.model.course import TREATED
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.evidence import EvidenceReport
from jitter_workshop.model.noise import HIDDEN_THREADS, HIDEABLE, NOISES, Noise, fill_in_name, is_cause
from jitter_workshop.model.run import Run
from jitter_workshop.model.session import ChapterProgress, HuntOutcome
from jitter_workshop.model.spec import Placement
from jitter_workshop.model.text import SHORT, clean, many

if TYPE_CHECKING:
    import random

NO_NOISE_HIDDEN = "no noise is hidden now"
NO_NAMED_NOISE = "no noise that you named goes on"
NONE_HIDDEN = "this host could start no kind of noise, so no noise can be hidden"
FEWEST = 3
"""The least number of suspects in a hunt. With fewer, a right answer says too little."""
ISOLATED_REMEDY = "restore the isolation, or wait until the one who applied it restores it; then hide a noise"
KEEP_AWAY = ("isolation",)
"""The tunables that keep every bound noise off the measured CPU, and that are restored without a reboot."""

LONGEST_S = 1_800
MOST_KEPT = 100
"""Greatest number of hunts in a chapter's progress; the oldest are dropped."""

HuntState = Literal["running", "stopped", "over", "named", "answered"]
"""The states of a hunt.

- ``running``: the noise runs, and the learner has not answered.
- ``stopped``: somebody ended the noise's process, which is one way to win.
- ``over``: the noise's time is up.
- ``named``: the learner named the noise. It goes on, so that the learner can try a cure, unless the learner kills it.
- ``answered``: the hunt has ended. The learner gave up, or named the noise and tries no further cure.
"""


@dataclass(frozen=True, slots=True)
class HuntAnswer:
    """Hold the result of a learner's answer in a hunt.

    - ``right``: True if the learner named the hidden noise.
    - ``title``: the title of the noise that ``sentences`` describe.
    - ``sentences``: after a wrong answer, the signs of the noise that the learner named. After the right answer or
      after giving up: what the hidden noise does, how to find it, and what helps.
    """

    right: bool
    title: str
    sentences: tuple[str, ...]


def suspected_noises(placement: Placement, allowed: Collection[int], kinds: Sequence[str] = ()) -> tuple[Noise, ...]:
    """Return the kinds of noise that can be hidden during runs with this placement. ``allowed``: the CPUs that this
    process may use. ``kinds``: the kinds that the chapter hides, () for all kinds."""
    return tuple(
        noise for noise in NOISES if _can_hide(noise.id, placement, allowed) and (not kinds or noise.id in kinds)
    )


def seen_before(progress: Iterable[ChapterProgress]) -> tuple[str, ...]:
    """Return the kinds of noise of a session's earlier hunts, as far as their outcomes are stored. A noise that the
    learner neither named, gave up nor stopped has no stored outcome."""
    return tuple(dict.fromkeys(outcome.kind for one in progress for outcome in one.hunts))


class Hunt:
    """Hold one hidden noise.

    The noise ends with the thread that creates this object. So this thread must live until the hunt ends. Call
    :meth:`close` at the end, or use the object as a context manager. Raise HostError if this host can hide no noise,
    UsageError if ``seconds`` is invalid.

    - ``outcome``: the result to store; None until the learner names the noise or gives up.
    - ``cured``: True if traces show that the learner's cure works.
    - ``start``: the function that starts the noise.
    - ``picker``: the random generator that chooses the kind. If ``picker`` is None, the generator is made from
      ``seed``.
    - ``now_s``: the function that returns the time of a clock in seconds.
    - ``kinds``: the kinds that may be hidden, () for all kinds.
    - ``before``: the kinds of earlier hunts. One of them is chosen only if no other kind can be hidden.
    - ``seed``: the seed of the choice, which is stored with the outcome; None for the system's random numbers.
    """

    def __init__(
        self,
        placement: Placement,
        allowed: Collection[int],
        seconds: int = LONGEST_S,
        start: Callable[[NoiseOrder], NoiseChild] = NoiseChild,
        picker: random.Random | None = None,
        now_s: Callable[[], float] = time.monotonic,
        kinds: Sequence[str] = (),
        before: Collection[str] = (),
        seed: int | None = None,
    ) -> None:
        if not 0 < seconds <= LONGEST_S:
            raise UsageError(f"a hunt lasts from 1 to {LONGEST_S} s")
        self.wrong_answers = 0
        self.outcome: HuntOutcome | None = None
        self.cured = False
        self._tried = False
        """True if a run with a cure was made, and its trace does not show that the cure failed."""
        self._ended = False
        self._now_s = now_s
        # Read before the noise begins, so that the noise cannot end by itself before this time.
        self._over_at_s = now_s() + seconds
        self.suspects = suspected_noises(placement, allowed, kinds)
        self.seed = seed
        if picker is None:
            import random

            picker = random.SystemRandom() if seed is None else random.Random(seed)
        self._before = frozenset(before)
        self._kind, self._noise = self._begin(placement, allowed, seconds, start, picker)

    @property
    def state(self) -> HuntState:
        over = self._now_s() >= self._over_at_s
        if self.outcome is not None:
            return "named" if self.outcome.named and not (self._ended or over) else "answered"
        gone = self._noise.gone()
        if gone is None:
            return "running"
        return "over" if over else "stopped"

    @property
    def runs(self) -> bool:
        """Return True if the noise takes time now."""
        return self.state in ("running", "named") and self._noise.gone() is None

    def answer(self, kind: str) -> HuntAnswer:
        """Check an answer. After the right one the noise goes on, so that the learner can try a cure; but it ends if a
        cure was tried before. Raise UsageError for a kind that is not a suspect."""
        if kind not in [suspect.id for suspect in self.suspects]:
            named = ", ".join(suspect.id for suspect in self.suspects)
            raise UsageError("the answer is not one of the suspects", f"name one of {named}")
        if kind == self._kind:
            return self._explained(right=True)
        if self.outcome is None:
            self.wrong_answers += 1
        noise = known(kind)
        return HuntAnswer(False, noise.title, (f"The noise that you named has these signs: {noise.found_as}",))

    def reveal(self) -> HuntAnswer:
        """Return which noise is hidden, and end the noise."""
        return self._explained(right=False)

    def judge_cure(self, helped: bool | None) -> None:
        """Take the result of a run with the learner's cure. A named noise then ends, unless the cure failed.
        ``helped``: True or False by traces, None if no trace shows it."""
        self.cured, self._tried = helped is True, helped is not False
        if self.outcome is not None and self.outcome.named:
            self.outcome = dataclasses.replace(self.outcome, cured=self.cured)
            if self._tried:
                self.close()

    def took(self, report: EvidenceReport) -> float | None:
        """Return the time that the noise took in a traced run, in ns per second. Return None if a trace cannot show
        this kind of noise."""
        does = fill_in_name(known(self._kind).does, HIDDEN_THREADS)
        causes = [what.causes[0] for what in does if what.causes[0][0] != "no_event"]
        found = [c.ns_per_second for c in report.causes if any(is_cause(cause, c.kind, c.name) for cause in causes)]
        return sum(found) if causes else None

    def close(self) -> None:
        """End the noise. A second call does nothing."""
        if not self._ended:
            self._ended = True
            self._noise.kill()

    def __enter__(self) -> Hunt:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(
        self,
        placement: Placement,
        allowed: Collection[int],
        seconds: int,
        start: Callable[[NoiseOrder], NoiseChild],
        picker: random.Random,
    ) -> tuple[str, NoiseChild]:
        left = [suspect.id for suspect in self.suspects]
        while left:
            kind = picker.choice([one for one in left if one not in self._before] or left)
            order = order_for(kind, placement, allowed, seconds, HIDDEN_THREADS, seed=1 + picker.randrange(1 << 32))
            try:
                return kind, start(order)
            except HostError:
                # This kind stays among the suspects: the learner would rule out a kind that is missing there.
                left.remove(kind)
        raise HostError(NONE_HIDDEN)

    def _explained(self, right: bool) -> HuntAnswer:
        if self.outcome is None:
            # Ask before the noise is ended here: "stopped" means that the learner ended it.
            stopped = self.state == "stopped"
            self.outcome = HuntOutcome(self._kind, right, stopped, self.wrong_answers, self.cured, self.seed)
        if self._tried or not self.outcome.named:
            self.close()
        noise = known(self._kind)
        return HuntAnswer(right, noise.title, (noise.what, noise.found_as, noise.treatment))


def _can_hide(kind: str, placement: Placement, allowed: Collection[int]) -> bool:
    if kind not in HIDEABLE or (kind == "spinners" and len(allowed) < 2):
        return False
    try:
        order_for(kind, placement, allowed, LONGEST_S)
    except HostError:
        return False
    return True


def with_outcome(progress: ChapterProgress, outcome: HuntOutcome) -> ChapterProgress:
    """Return the progress with one more hunt's outcome. Only the newest outcomes are kept."""
    return dataclasses.replace(progress, hunts=(*progress.hunts, outcome)[-MOST_KEPT:])


class Hiding:
    """Keep a chapter's hunt alive on its own thread until :meth:`close`. ``begin``: the function that creates the hunt
    on this thread. The constructor raises the errors of ``begin``."""

    def __init__(self, begin: Callable[[], Hunt], chapter_id: str = "") -> None:
        self.chapter_id = chapter_id
        # The screen and the thread of a run both ask for the noise's state: one at a time.
        self._asking = threading.Lock()
        # The one thread of this pool lives until the pool is shut down or the process ends.
        self._thread = ThreadPoolExecutor(1, "hunt")
        try:
            self.hunt = self._thread.submit(begin).result()
        except BaseException:
            self._thread.shutdown()
            raise

    @property
    def state(self) -> HuntState:
        with self._asking:
            return self.hunt.state

    @property
    def runs(self) -> bool:
        with self._asking:
            return self.hunt.runs

    def close(self) -> None:
        """End the noise, and return after its end."""
        self._thread.submit(self.hunt.close).result()
        self._thread.shutdown()


class Hunts:
    """Hide one noise at a time during a chapter's runs, check the answers, and store the outcomes."""

    def __init__(self, context: SessionContext) -> None:
        self._context = context
        self._hiding: Hiding | None = None
        self.hide = Hunt

    @property
    def hunt(self) -> Hunt | None:
        """Return the current hunt, even if it is already answered; None without a hunt."""
        return self._hiding.hunt if self._hiding is not None else None

    @property
    def hiding(self) -> bool:
        """Return True if a hidden noise runs now, or one that the learner has already named."""
        return self._hiding is not None and self._hiding.runs

    def kept_away_by(self) -> tuple[str, ...]:
        """Return the ids of the tunables of :data:`KEEP_AWAY` that this tool has applied to this host and not restored,
        in the order of their applies. Return () on a recorded host."""
        return tuple(one["id"] for one in self._context.standing() if one["id"] in KEEP_AWAY)

    def suspects(self, walk: ChapterWalk) -> tuple[Noise, ...]:
        """Return the kinds of noise that this host can hide in a chapter. Raise HostError if there are now too few of
        them to choose from (FEWEST), UsageError if the chapter has no hunts."""
        return self._choice(walk, *self._ground(walk))

    def begin(self, walk: ChapterWalk) -> Hunt:
        """End the previous hunt, then hide a noise during a chapter's next runs. This takes a second. Raise HostError
        if this host can hide too few kinds of noise (FEWEST), UsageError if the chapter has no hunts, MeasureError if
        the noise fails."""
        self.end()
        placement, allowed = self._ground(walk)
        self._choice(walk, placement, allowed)
        how: dict[str, Any] = {}
        if walk.chapter.suspects:
            before = seen_before(self._context.session.chapters.values())
            how = {"kinds": walk.chapter.suspects, "before": before, "seed": secrets.randbits(32)}
        self._hiding = Hiding(lambda: self.hide(placement, allowed, **how), walk.chapter.id)
        # Runs with an earlier noise leave the chapter's slots; the session keeps these runs.
        runs = {slot: run for slot, run in walk.progress.runs.items() if slot not in ("again", TREATED)}
        progress = dataclasses.replace(walk.progress, runs=runs, weighed={})
        self._context.save_progress(walk.chapter.id, progress)
        return self._hiding.hunt

    def answer(self, kind: str) -> HuntAnswer:
        """Check an answer. After the right answer the outcome is stored in the chapter's progress, and the noise goes
        on until a cure was tried. Raise UsageError if the kind is not a suspect, or if no noise is hidden."""
        return self._answer(lambda hunt: hunt.answer(kind))

    def other_cpus(self, beside: Run | None) -> tuple[int, ...]:
        """Read the host again, and return the CPUs to which the measured thread can move. The thread's CPU in the run
        ``beside`` is left out. ``beside``: the run with the hidden noise."""
        self._context.look_again()
        return cure.other_cpus(self._context.topology.allowed, beside)

    def weigh(self, beside: Run, treated: Run) -> None:
        """Compare the times that the hidden noise took without and with the learner's cure. Store the result in the
        chapter's progress, if both runs have a readable trace. If the noise is named already, end it, unless the cure
        failed. Reading the traces takes a second or two. ``beside``: the run without the cure. ``treated``: the run
        with the cure."""
        hiding = self._hiding
        if hiding is None:
            return
        hunt, context = hiding.hunt, self._context
        try:
            both = [context.runs.causes(run) for run in (beside, treated) if context.runs.traced(run)]
        except SessionError:
            both = []
        found = cure.weighed([hunt.took(report) for report in both if isinstance(report, EvidenceReport)])
        if found is not None:
            progress = dataclasses.replace(context.progress(hiding.chapter_id), weighed={treated.id: found})
            context.save_progress(hiding.chapter_id, progress, entered=False)
        before = hunt.outcome
        hunt.judge_cure(None if found is None else cure.gone(found))
        progress = context.progress(hiding.chapter_id)
        if before is not None and hunt.outcome is not None and progress.hunts[-1:] == (before,):
            progress = dataclasses.replace(progress, hunts=(*progress.hunts[:-1], hunt.outcome))
            context.save_progress(hiding.chapter_id, progress, entered=False)

    def give_up(self) -> HuntAnswer:
        """End the noise, and return its kind, because the learner gives up. Raise UsageError if no noise is hidden."""
        return self._answer(Hunt.reveal)

    def enough(self) -> None:
        """End the noise that the learner has named, because the learner tries no further cure. Raise UsageError if no
        named noise goes on."""
        if self._hiding is None or self._hiding.state != "named":
            raise UsageError(NO_NAMED_NOISE, "name the noise first, or give up")
        self._hiding.hunt.close()

    def end(self) -> None:
        """End the noise, and forget the hunt. A second call does nothing."""
        hiding = self._hiding
        if hiding is not None and hiding.state == "stopped":
            self.give_up()  # the learner ended the noise without naming it; that result is kept, too
        self._hiding = None
        if hiding is not None:
            hiding.close()

    def _answer(self, answer: Callable[[Hunt], HuntAnswer]) -> HuntAnswer:
        hiding = self._hiding
        if hiding is None or hiding.hunt.outcome is not None:
            raise UsageError(NO_NOISE_HIDDEN, "hide a noise first")
        finding = answer(hiding.hunt)
        if hiding.hunt.outcome is not None:
            progress = with_outcome(self._context.progress(hiding.chapter_id), hiding.hunt.outcome)
            self._context.save_progress(hiding.chapter_id, progress, entered=False)
        return finding

    def _choice(self, walk: ChapterWalk, placement: Placement, allowed: Collection[int]) -> tuple[Noise, ...]:
        """Return the suspects of a chapter. Raise HostError if there are fewer than FEWEST. A chapter that names fewer
        kinds needs all of them."""
        kinds = walk.chapter.suspects
        found = suspected_noises(placement, allowed, kinds)
        if len(found) >= min(FEWEST, len(kinds) or FEWEST):
            return found
        few = f"only {many(len(found), 'kind')} of noise can be hidden" if found else "no noise can be hidden"
        isolated = [cpu for cpu in placement.cpus if cpu not in allowed]
        if isolated:
            other = "the others" if found else "no noise"
            cannot = "cannot" if found else "can"
            raise HostError(
                f"{few} now, because {other} {cannot} reach the isolated CPU {isolated[0]}", ISOLATED_REMEDY
            )
        raise HostError(f"{few} here: this host cannot make {'more kinds' if found else 'any kind'} of noise")

    def _ground(self, walk: ChapterWalk) -> tuple[Placement, CpuSet]:
        """Return the placement of a chapter's runs, and the CPUs that a noise may use. Raise HostError on a recorded
        host, UsageError if the chapter has no hunts."""
        context = self._context
        if context.recorded:
            raise HostError("no noise can be hidden on a recorded host", "leave out --root")
        if not walk.hunts:
            raise UsageError("this chapter has no hidden noise")
        # A run reads the host when it begins. Read it here, too: otherwise noise and run may use different CPUs.
        context.look_again()
        isolated = CpuSet(context.host.isolated)
        placement = placed_on(context.root, context.topology, walk.measuring.request("again"), isolated).placement
        return placement, context.topology.allowed

    def beside(self, request: MeasureRequest) -> MeasureRequest:
        """Return the request, marked as ``hunted`` if a hidden noise is running."""
        return dataclasses.replace(request, hunted=True) if self.hiding else request


def past_hunts(hunts: Sequence[HuntOutcome], most: int = 6) -> str:
    """Return a sentence on the hunts that ended, the newest first; "" if none has ended. The sentence describes at most
    ``most`` hunts, and gives the number of the others."""
    if not hunts:
        return ""
    caught = sum(outcome.named for outcome in hunts)
    told = [_outcome(outcome) for outcome in reversed(hunts)][:most]
    more = f"; and {len(hunts) - most} earlier" if len(hunts) > most else ""
    return f"{caught} of {many(len(hunts), 'hidden noise')} found: {'; '.join(told)}{more}."


def _outcome(outcome: HuntOutcome) -> str:
    title = next((noise.title for noise in NOISES if noise.id == outcome.kind), clean(outcome.kind, SHORT))
    stopped = "stopped, and " if outcome.stopped else "kept away, and " if outcome.cured else ""
    if outcome.named:
        return f"{title} ({stopped}named at {tries(outcome.wrong_answers)})"
    return f"{title} ({stopped}not named)"


def tries(wrong_answers: int) -> str:
    """Return in words which try was right: ``the first try``, ``try 2`` and so on.

    ``wrong_answers``: the number of wrong answers before the right one.
    """
    return f"try {wrong_answers + 1}" if wrong_answers else "the first try"
