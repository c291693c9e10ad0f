"""Define what the step ``diagnose`` shows: the causes seen in a chapter's first run, and how an answer is judged."""

from __future__ import annotations

from typing import Literal

from jitter_workshop.model.course import DiagnosisAsks
from jitter_workshop.model.evidence import ExplainedStall
from jitter_workshop.model.record import dataclass

EvidenceSource = Literal["trace", "counters", "emulated"]
"""The sources of what a run shows. ``trace``: the kernel's trace. ``counters``: counters of this host. ``emulated``:
counters of an emulated machine, where no cause has a time."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """Hold one cause that was seen in a run.

    - ``id``: ``KIND:NAME``.
    - ``kind``: one of ``model.evidence.CAUSE_KINDS``. Without a trace, also ``tasks``, ``tick`` or ``steal``.
    - ``label``: the cause in words, safe to print.
    - ``count``: the number of stalls with this cause in a trace. Without a trace, the number of counted events. None if
      not known.
    - ``total_ns``: the time that the cause took, None if not known.
    - ``own_load``: True if the cause is, or includes, a task of the load that the chapter made.
    - ``woken``: True for a task or work item that interrupts from another CPU probably woke. This is so if the trace
      has about as many of these interrupts as events of the task. Also True for such an interrupt, if the trace shows
      that most of these interrupts woke a task. The interrupt and the task that it woke are then listed as one cause.
    - ``acts``: True if the chapter's change acts on this cause, so that it can end this cause.
    - ``around_ns``: the part of ``total_ns`` in the gaps next to the cause's events. See
      ``model.evidence.CAUSE_KINDS``, ``around``. 0 if it is not known.
    - ``typical_ns``: the median of the times that the cause took in its stalls, 0 if it is not known.
    """

    id: str
    kind: str
    name: str
    label: str
    count: int | None
    total_ns: int | None
    own_load: bool = False
    woken: bool = False
    acts: bool = False
    around_ns: int = 0
    typical_ns: int = 0


@dataclass(frozen=True, slots=True)
class LongestStalls:
    """Hold the longest stalls of a run, which make its tail.

    - ``number``: how many stalls these are.
    - ``total_ns``: the time of these stalls together, in ns.
    - ``cause``: the cause that took most of this time. Its ``total_ns`` is the time that it took in these stalls.
    """

    number: int
    total_ns: int
    cause: Suspect


@dataclass(frozen=True, slots=True)
class SeenCauses:
    """Hold the causes that were seen in a run.

    - ``suspects``: the causes; with a trace in the order of their numbers of stalls, the most frequent first, else in
      the order of their labels.
    - ``stalls``: the number of stalls.
    - ``stalled_ns``: the time that these stalls took.
    - ``unknown_ns``: the part of ``stalled_ns`` whose cause is not known. With a trace, this is the time of the gaps in
      the trace. With counters, it is the time of all causes that the kernel counts but does not time.
    - ``others``: the number of smaller causes that are not in ``suspects``.
    - ``others_ns``: their time, added up; 0 if it is not known.
    - ``why_no_trace``: the reason why there is no trace, "" if there is a trace.
    - ``notes``: further sentences about the run.
    - ``stall``: the stall of the run that is easiest to read, with only its main pieces. None if no stall is suitable.
    - ``recorded``: the day and the machine of a recorded run, "" for a run on this host.
    - ``unnamed_ns``: the part of ``stalled_ns`` for which the trace has no event of the kernel. It is 0 if a cause in
      ``suspects`` already includes this time.
    - ``threads``: the number of measured threads whose times are added up; 1 if it is not known.
    - ``made``: the number of times that the learner made this run in succession. The causes are those of the last time.
    - ``seconds``: the measured time of the run in seconds, 0 if it is not known.
    - ``unlisted_ended_ns``: the time of the causes that ``others`` counts and on which the chapter's change acts.
    - ``wanted``: what the chapter's diagnosis asks. See ``asks`` for the question that is really asked.
    - ``longest``: the longest stalls; None if the run has no trace.
    - ``guest``: True if the run was made on a guest (``Run.in_guest``).
    """

    run: str
    source: EvidenceSource
    suspects: tuple[Suspect, ...]
    stalls: int
    stalled_ns: int
    unknown_ns: int
    others: int = 0
    why_no_trace: str = ""
    notes: tuple[str, ...] = ()
    stall: ExplainedStall | None = None
    recorded: str = ""
    unnamed_ns: int = 0
    threads: int = 1
    made: int = 1
    seconds: float = 0.0
    wanted: DiagnosisAsks = "most"
    unlisted_ended_ns: int = 0
    others_ns: int = 0
    longest: LongestStalls | None = None
    guest: bool = False

    def suspect(self, ident: str) -> Suspect | None:
        return next((one for one in self.suspects if one.id == ident), None)

    @property
    def emulated(self) -> bool:
        """Return True if the run was made on an emulated machine. An answer is then judged by numbers of events."""
        return self.source == "emulated"

    @property
    def quiet(self) -> bool:
        """Return True if nothing took time from the measured threads, as far as this run can show."""
        return not self.suspects or not (self.stalls or self.emulated)

    @property
    def asks(self) -> DiagnosisAsks:
        """Return what is asked about the causes. It is ``most`` if the chapter's change acts on none of them."""
        return "ends" if self.wanted == "ends" and any(one.acts for one in self.suspects) else "most"

    @property
    def ended_ns(self) -> int:
        """Return the time in ns that the causes took on which the chapter's change acts. A cause without a known time
        counts as 0."""
        return sum(one.total_ns or 0 for one in self.suspects if one.acts) + self.unlisted_ended_ns

    def weight(self, one: Suspect) -> int:
        """Return the number by which a cause is compared with other causes. This is the time in ns that the cause took.
        On an emulated machine, it is the number of the cause's events."""
        return (one.count if self.emulated else one.total_ns) or 0


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """Hold a learner's answer with its judgement.

    - ``right``: True if the answer is right by the question ``SeenCauses.asks``, None if the evidence cannot decide.
    - ``most``: the cause that took most time. On an emulated machine, the cause with most events. None if not known.
    - ``share``: the share (0..1) of the stalled time that belongs to ``most``.
    """

    chosen: Suspect
    right: bool | None
    most: Suspect | None
    share: float
