"""Define what the step ``diagnose`` shows: the causes seen in a chapter's first run, and how an answer is judged."""

from __future__ import annotations

from typing import Literal

from jitter_workshop.model.evidence import ExplainedStall
from jitter_workshop.model.record import dataclass

Source = Literal["trace", "counters", "emulated"]
"""The sources of what a run shows. ``trace``: the kernel's trace. ``counters``: counters of this host. ``emulated``:
counters of an emulated machine, where no cause has a time."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """Hold one cause that was seen in a run.

    - ``id``: ``KIND:NAME``.
    - ``kind``: one of ``model.evidence.CAUSE_KINDS`` or, by counters, ``tasks``, ``tick`` or ``steal``.
    - ``label``: the cause in words, safe to print.
    - ``count``: the number of stalls with this cause in a trace, or the number of events by counters; None if there is
      no such number.
    - ``total_ns``: the time that the cause took, None if this time is not known.
    - ``own_load``: with a trace, True if the cause is a task of the load that the chapter made beside the run; with
      counters, True if the cause includes such a task.
    - ``woken``: True if calls (interrupts) from another CPU probably woke the task that is this cause, because the
      trace has about as many calls as events of the cause. Also True if the cause is the call itself, together with its
      wake-up of a task.
    """

    id: str
    kind: str
    name: str
    label: str
    count: int | None
    total_ns: int | None
    own_load: bool = False
    woken: bool = False


@dataclass(frozen=True, slots=True)
class SeenCauses:
    """Hold what was seen in a run.

    - ``suspects``: the causes, in the order of their labels.
    - ``stalls``: the number of stalls, which took ``stalled_ns``.
    - ``unknown_ns``: the part of ``stalled_ns`` whose cause is not known. With a trace, this is the time of its gaps.
      With counters, it is the time of all causes that are counted but not timed.
    - ``others``: the number of smaller causes that are not in the list.
    - ``why_no_trace``: the reason why there is no trace, "" if there is one.
    - ``notes``: further sentences about the run.
    - ``stall``: one stall of the run that can be read piece by piece, with only its main pieces; None if there is no
      such stall.
    - ``recorded``: the day and the machine of a recorded run, "" for a run on this host.
    - ``unnamed_ns``: the part of ``stalled_ns`` in which the trace has no event of the kernel; 0 if ``suspects`` has
      this part.
    """

    run: str
    source: Source
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

    def suspect(self, ident: str) -> Suspect | None:
        return next((one for one in self.suspects if one.id == ident), None)

    @property
    def emulated(self) -> bool:
        """Return True if the run was made on an emulated machine, so that an answer is judged by numbers of events."""
        return self.source == "emulated"

    @property
    def quiet(self) -> bool:
        """Return True if nothing took time from the measured threads, as far as this run can show."""
        return not self.suspects or not (self.stalls or self.emulated)

    def weight(self, one: Suspect) -> int:
        """Return the number by which causes are compared: the time that the cause took, or on an emulated machine its
        number of events."""
        return (one.count if self.emulated else one.total_ns) or 0


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """Hold a judged answer. ``right``: None if the evidence cannot decide. ``most``: the cause that took most time or,
    on an emulated machine, came most often; None if not known. ``share``: the share (0..1) that ``most`` has of all
    stalled time."""

    chosen: Suspect
    right: bool | None
    most: Suspect | None
    share: float
