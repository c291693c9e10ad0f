"""Define the data that a chapter shows while a learner goes through its steps. The screen and the plain walk (the
workshop as lines of text) show the same data."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from jitter_workshop.model.change import Change
from jitter_workshop.model.course import StepName
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.curve import Comparison, PercentileCurve
from jitter_workshop.model.effect import Effects, KnownReason, Relation
from jitter_workshop.model.host import Topology
from jitter_workshop.model.judgement import PairJudgement
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.run import Run
from jitter_workshop.model.verdict import VerdictWord

StepState = Literal["done", "seen", "now", "open", "left_out"]
"""The states of a step. ``seen``: the learner read the step on a recording, where nothing is measured or written."""


Chance = Literal["moves", "counts", "good", "rights", "held", "later", "measures", "reads", "recording", "not_here"]
"""The things that a chapter can show on a host.

- ``moves``: the chapter's change moves the curve or the chapter's figure.
- ``counts``: the chapter's change moves a count alone: it ends too little time to move the latency.
- ``good``: the settings are right already, so nothing is left to change.
- ``rights``: the change needs root's rights, which this user cannot get.
- ``held``: the settings can change, but most of what they act on cannot be moved on this host.
- ``later``: the chapter can be done once this tool's own change is restored.
- ``measures``: the chapter measures and changes nothing.
- ``reads``: the chapter only reads.
- ``recording``: the chapter is taught on a recording.
- ``not_here``: the chapter cannot be done at all.
"""

CHANCE_WORDS: dict[Chance, str] = {
    "moves": "has effect",
    "counts": "is counted",
    "good": "is all set",
    "rights": "needs root",
    "held": "cannot act",
    "later": "must wait",
    "measures": "measures",
    "reads": "explains",
    "recording": "is recorded",
    "not_here": "cannot run",
}
"""The words for a ``Chance``, which say what the chapter does on this host."""

Grade = Literal["right", "beside", "wrong"]
"""The results of a judged guess. ``beside``: the answer is the neighbour of the right one in an ordered list of
amounts."""

OwnLatency = Literal[
    "better",
    "worse",
    "perhaps better",
    "perhaps worse",
    "not decided",
    "no clear change",
    "not compared",
    "alike",
    "difference seen",
    "not comparable",
    "not read",
]
"""The words for what a learner's two runs of a chapter show of the latency.

- ``better``, ``worse``: it changed by more than chance explains.
- ``perhaps better``, ``perhaps worse``: it changed, but for another reason than the change, perhaps.
- ``not decided``: it changed, and a cause on which the change does not act took most of the difference.
- ``no clear change``: no figure of latency or stalls changed clearly.
- ``not compared``: no figure of latency or stalls could be compared.
- ``alike``: nothing was changed between the two runs, so they differ only by chance.
- ``difference seen``: it changed, and neither run is better: they are two kinds of run.
- ``not comparable``: the latencies of the two runs cannot be compared.
- ``not read``: this version of the program has no report on a trace of the runs, which may say more.
"""


@dataclass(frozen=True, slots=True)
class OwnResult:
    """Hold the result of the learner's own two runs of a chapter, as the step ``compare`` tells it.

    - ``latency``: what the runs show of the latency.
    - ``figure``: True if the chapter's own figure moved as the lesson says, and is not ``latency`` itself. False if it
      did not move so. None if the chapter has no such figure, or if the runs do not show it.
    - ``apart``: the factor by which two runs without a change differ in the figure that judges them. None if it rests
      on few events, and for any other pair.
    - ``judge``: the name of the figure of ``apart``; "" without ``apart``.
    - ``few``: True if fewer than ten stalls lie beyond this figure in one of the runs.
    - ``proof``: the verdict of the chapter's newest proof, if it has enough rounds, else None. A proof is better
      evidence than two runs.
    """

    latency: OwnLatency
    figure: bool | None = None
    proof: VerdictWord | None = None
    apart: float | None = None
    judge: str = ""
    few: bool = False


@dataclass(frozen=True, slots=True)
class Fact:
    """Hold one fact seen on this host: its name, its value, its meaning for latency, and its source."""

    title: str
    value: str
    meaning: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class StepView:
    """Hold one step of a chapter as the header shows it."""

    name: StepName
    state: StepState

    @property
    def shown(self) -> str:
        """Return the step's name with a sign:

        - ▸ and capitals for the present step,
        - ✓ for a done step,
        - ◌ for a step that was only seen on a recording.
        """
        if self.state == "now":
            return f"▸{self.name.upper()}"
        return self.name + {"done": "✓", "seen": "◌"}.get(self.state, "")


@dataclass(frozen=True, slots=True)
class PathEntry:
    """Hold one chapter on the home screen.

    - ``here``: True if the chapter can be done on this host; if not, ``reason`` says why.
    - ``rehearsed``: True if the chapter cannot be done here, and is taught on a recorded host instead.
    - ``guess``: True if the learner's guess was near, None if nothing was guessed. In a chapter with a hunt,
      True if the learner has named a hidden noise.
    - ``beside``: True if the guess was not right, but beside the right answer (:data:`Grade`).
    - ``asks``: False if the chapter asks for no guess and hides no noise.
    - ``hunts``: True if the chapter hides a noise, so that ``guess`` is about the noise's name.
    - ``guessed``: True if a guess of the learner is kept, judged or not.
    - ``setting``: None if the chapter sets nothing.
    - ``measures``: False if the learner only reads in this chapter.
    - ``in_class``: False if the learner is in a class whose list of chapters leaves this chapter out.
    - ``number``: the chapter's number in the course and on a class's board.
    - ``chance``: what the chapter can show on this host, as one word (:data:`Chance`).
    - ``held``: a reason to do the chapter later, or "". There are two such reasons: the change has hardly any effect
      here, or the chapter cannot be done yet.
    - ``restored``: True if the chapter's settings were in effect in the second run, and have been restored since. A
      placement ends with its run.
    - ``places``: True if the chapter's setting is a placement.
    - ``result``: the result of the learner's own two runs; None before them, and in a chapter without a change.
    - ``only_read``: True if the chapter is done, but the learner has only read it: it is taught on a recording, and
      there is no run of it to show.
    """

    chapter_id: str
    title: str
    summary: str
    minutes: int
    here: bool
    reason: str
    next_step: StepName
    started: bool
    done: bool
    setting: bool | None
    curve: bool
    guess: bool | None
    rehearsed: bool = False
    in_class: bool = True
    number: int = 0
    measures: bool = True
    chance: Chance = "measures"
    held: str = ""
    restored: bool = False
    asks: bool = True
    hunts: bool = False
    guessed: bool = False
    only_read: bool = False
    places: bool = False
    result: OwnResult | None = None
    beside: bool = False


@dataclass(frozen=True, slots=True)
class RunCurve:
    """Hold a run of a chapter or session with its curve, ready to draw. ``run``: None if the curve is not that of
    a run's latencies, such as a published curve. ``from_due``: True if its latencies count from when a message was due.
    False for any other quantity, such as transit."""

    key: str
    label: str
    curve: PercentileCurve
    run: Run | None
    from_due: bool = False


@dataclass(frozen=True, slots=True)
class GuessOutcome:
    """Hold the result of a guess. ``text``: the result in a sentence. ``near``: True if the guess was near.
    ``explanation``: the explanation of the chosen answer. ``figures``: the part of the text with the figures that
    decided it; "" if it has none. ``beside``: True if the answer is not right, but beside the right one
    (:data:`Grade`)."""

    text: str
    near: bool | None
    explanation: str
    guessed_ns: int | None
    measured_ns: int | None
    figures: str = ""
    beside: bool = False

    @property
    def grade(self) -> Grade | None:
        """Return the result in a word; None if the guess could not be judged."""
        if self.near is None:
            return None
        return "right" if self.near else "beside" if self.beside else "wrong"

    def text_beside(self, told: Collection[str]) -> str:
        """Return the text for a page that shows figures of its own. If the deciding figure is among them, the text is
        without its values. ``told``: the names of the figures on the page."""
        shown = any(name and self.figures.lower().startswith(f"{name.lower()}:") for name in told)
        if not shown:
            return self.text
        # Without the figures, "So" would have no reason before it.
        return self.text.replace(f" {self.figures}", "", 1).replace(" So these", " These", 1)


@dataclass(frozen=True, slots=True)
class PlanView:
    """Hold what a plan step would change.

    - ``changes``: all writes.
    - ``host_files``: number of files of the host that would be written (0 for a placement).
    - ``words``: the requested tunables, as on a command line.
    - ``left_out``: the settings that the plan does not change, each with its reason.
    """

    changes: tuple[Change, ...]
    host_files: int
    text: str
    words: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CpuView:
    """Hold a host's CPUs as a chapter shows them.

    - ``hot``: the CPUs that are kept free.
    - ``threads``: (name, CPU) of each thread in the run that follows the change. The threads would get these CPUs if
      this run began now. () if the scheduler chooses the CPUs.
    """

    topology: Topology
    hot: CpuSet
    threads: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class BootWay:
    """Hold how a chapter's boot parameters would be set.

    - ``once``: True if the parameters are set for the next boot alone, False for every boot.
    - ``why_not``: the reason why this host cannot set parameters for the next boot alone, "" if it can.
    - ``this_boot``: True if the running kernel has the parameters only until the next boot.
    - ``root_first``: True if only root can find out if this host can set parameters for the next boot alone. If the
      user chooses the next boot alone, the workshop asks for root's rights.
    """

    once: bool
    why_not: str = ""
    this_boot: bool = False
    root_first: bool = False


@dataclass(frozen=True, slots=True)
class ApplyView:
    """Hold the outcome of applying a chapter's plan.

    - ``applied``: the number of applied settings.
    - ``refused``: (path or id, reason) of each setting that was not applied as planned.
    - ``settled``: True if the checks of the chapter's tunables now find nothing to improve.
    - ``text``: the outcome in words.
    - ``by_hand``: True if the learner made the writes by hand.
    """

    applied: int
    refused: tuple[tuple[str, str], ...]
    settled: bool
    needs_reboot: bool
    text: str
    by_hand: bool = False


@dataclass(frozen=True, slots=True)
class SettingChange:
    """Hold a tunable's values before and after the change, for a chapter on a recorded host."""

    title: str
    before: str
    after: str
    settled: bool


@dataclass(frozen=True, slots=True)
class ThreadEvidence:
    """Hold a thread's switches and migrations. ``residence``: (CPU, messages handled there, their share 0..1)."""

    name: str
    voluntary_switches: int | None
    involuntary_switches: int | None
    migrations: int | None
    residence: tuple[tuple[int, int, float], ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Hold the explanation of a run without a trace. It comes from counters alone.

    - ``interrupts``: (name, CPU, count, per second) on the CPUs that the threads used, largest first.
    - ``knee``: sentences on how often stalls come, and on the percentiles from which these stalls show in the curve.
    """

    run: Run
    threads: tuple[ThreadEvidence, ...]
    interrupts: tuple[tuple[str, int, int, float], ...]
    softirqs: tuple[tuple[str, int, int, float], ...]
    knee: tuple[str, ...]
    by_hand: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CureView:
    """Hold the comparison of a hunt's three runs.

    - ``rows``: each has the name of a measure and three values: without noise, with noise, and with noise and cure.
    - ``text``: the result, in sentences.
    - ``verdict``: the beginning of ``text`` that says whether the cure helped; "" if the runs do not show it.
    - ``helped``: True if ``verdict`` says that the cure took away most of the noise's time.
    """

    rows: tuple[tuple[str, float | None, float | None, float | None], ...]
    text: str
    verdict: str = ""
    helped: bool = False


@dataclass(frozen=True, slots=True)
class CompareView:
    """Hold a comparison with its headline.

    - ``relation``: the relation of the two runs to each other.
    - ``effects``: the largest effects, None if the runs cannot be compared.
    - ``notes``: sentences on the differences between these runs and the runs that the chapter asks for. If ``effects``
      do not include the chapter's figure, there is also a sentence on this figure.
    - ``reason``: why the two runs cannot be compared; None if no such reason is known.
    - ``judgement``: what is decided about the two runs; None if they cannot be compared.
    """

    comparison: Comparison
    headline: str
    relation: Relation
    effects: Effects | None = None
    notes: tuple[str, ...] = ()
    reason: KnownReason | None = None
    judgement: PairJudgement | None = None
