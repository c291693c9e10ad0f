"""Make the runs of a proof with this tool's own benchmark. The module ``command_meter`` makes the runs of the user's
command.

A meter makes the runs, and checks that two runs differ only by the change. The module ``sides`` applies and
restores the change.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.measuring import measure as measuring
from jitter_workshop.flow.measuring.arrival import arriving
from jitter_workshop.flow.measuring.request import MeasureRequest, blocks
from jitter_workshop.flow.measuring.run_length import outlook
from jitter_workshop.flow.proving.sides import SideName
from jitter_workshop.model.change import IRQ_HERE
from jitter_workshop.model.evidence import load_called
from jitter_workshop.model.run import UNSTEADY, Run, RunObserver
from jitter_workshop.model.spec import Placement, between_blocks_s, clock_seconds
from jitter_workshop.model.text import MOST_NAMES, SHORT
from jitter_workshop.model.verdict import Side
from jitter_workshop.session.opened import OpenSession
from jitter_workshop.stats.comparison import differences
from jitter_workshop.stats.rounds import side_of


@dataclass(frozen=True)
class Occasion:
    """Hold what a meter needs to make one run of a proof. ``label``: the name of the run. ``proof``: the id of the
    proof."""

    side: SideName
    label: str
    proof: str
    session: OpenSession
    agent_connection: AgentConnection
    watcher: RunObserver
    cancel: CancelToken


@dataclass(frozen=True)
class Taken:
    """Hold the result of one run of a round.

    - ``side``: the measured values of this run. A round has two sides: without and with the change.
    - ``applied``: the settings that this tool had applied during the run.
    - ``complete``: False if the user stopped the run.
    - ``disturbed``: the other task that disturbed the run most, or "".
    - ``run``: the run of this tool's own benchmark; None for a command.
    """

    side: Side
    applied: tuple[Mapping[str, str], ...]
    complete: bool = True
    disturbed: str = ""
    run: Run | None = None


class Meter(ABC):
    """Make the runs of a proof, and check if two runs can be compared. ``of_runs``: the tunables that the meter itself
    applies during some of its runs."""

    of_runs: frozenset[str] = frozenset()

    @property
    @abstractmethod
    def seconds(self) -> float:
        """Return the estimated duration of one run in seconds, including its start."""

    @abstractmethod
    def measure(self, occasion: Occasion) -> Taken:
        """Make a run. Raise Cancelled if the user stops it. Raise MeasureError, HostError or SessionError if the run
        fails."""

    def spoiled(self, without: Taken, with_it: Taken, ids: Collection[str]) -> str:
        """Return the reason why two runs may differ because of something other than the change. Return "" if there is
        no such reason. ``ids``: the tunables of the change."""
        return self.unlike(without, with_it) or _another_stack(without, with_it, frozenset(ids), self.of_runs)

    def unlike(self, one: Taken, other: Taken) -> str:
        """Return the reason why two runs cannot be compared; "" if they can. The applied settings are not compared
        here.
        """
        return ""

    def changed(self, first: Taken, later: Taken) -> str:
        """Return the reason why a round cannot be compared with the first round, else "". ``first``: a run of the first
        round. ``later``: a run of the later round.
        """
        return ""

    def notes(self) -> tuple[str, ...]:
        """Return notes on how the runs were made, for the report of the proof."""
        return ()


class RunMeter(Meter):
    """Make runs of this tool's own benchmark. ``with_it``: the request for runs with the change. ``without``: the
    request for runs without the change; None: the same request."""

    def __init__(self, with_it: MeasureRequest, without: MeasureRequest | None = None) -> None:
        self._requests: dict[SideName, MeasureRequest] = {"with": with_it, "without": without or with_it}
        self._notes: dict[str, None] = {}
        if self._requests["without"].arrival is not None:
            self.of_runs = frozenset({IRQ_HERE})

    @staticmethod
    def of_placement(placed: MeasureRequest) -> RunMeter:
        """Return a meter that compares fixed CPUs with CPUs that the scheduler chooses. ``placed``: the request with a
        fixed CPU for each thread."""
        return RunMeter(placed, dataclasses.replace(placed.on(Placement("none")), placement="none"))

    @property
    def seconds(self) -> float:
        return run_seconds(self._requests["with"])[1]

    def expected_s(self, runs: Sequence[Run]) -> float:
        """Return the estimated duration of one run in seconds. The pauses between blocks are those of earlier
        ``runs``."""
        return outlook(self._requests["with"], runs).clock_s

    def measure(self, occasion: Occasion) -> Taken:
        request = dataclasses.replace(self._requests[occasion.side], label=occasion.label, proof=occasion.proof)
        place = occasion.agent_connection.place
        run = measuring.measure_run(
            request,
            occasion.session,
            occasion.watcher,
            occasion.cancel,
            place=place,
            turn_held=True,
            around=partial(arriving, occasion.agent_connection, request, self._tell),
        )
        disturbed = (
            f"{load_called(run.disturbed[0], SHORT)}, {run.disturbed[0].cpu_percent:g} %" if run.disturbed else ""
        )
        return Taken(side_of(run), run.applied, run.complete, disturbed, run)

    def _tell(self, sentence: str) -> None:
        self._notes[sentence] = None

    def unlike(self, one: Taken, other: Taken) -> str:
        a, b = one.run, other.run
        if a is None or b is None:
            return ""
        alike = len({dataclasses.replace(one, arrival=None) for one in self._requests.values()}) == 1
        if alike and _places(a) != _places(b):
            said = "the two runs of a round used different CPUs, so the CPUs are part of the difference"
            self._notes[said] = None
        unsteady = next((run.notes[UNSTEADY] for run in (a, b) if UNSTEADY in run.notes), "")
        return unsteady or "; ".join(differences(a, b))

    def changed(self, first: Taken, later: Taken) -> str:
        # A round with another clock, for example, cannot be compared with the other rounds.
        return "; ".join(differences(first.run, later.run)) if first.run is not None and later.run is not None else ""

    def notes(self) -> tuple[str, ...]:
        return tuple(self._notes)


def run_seconds(request: MeasureRequest) -> tuple[float, float]:
    """Return two durations in seconds: of a run's blocks, and of the whole run. The duration of the whole run is an
    estimate."""
    cut = blocks(request)
    blocks_s = cut.count * cut.block_ns / 1e9
    between_s = between_blocks_s(request.workload, traced=request.evidence, noisy=request.noise is not None)
    return blocks_s, request.settle_s + clock_seconds(blocks_s, cut.count, between_s, traced=request.evidence)


def _places(run: Run) -> tuple[int | None, ...]:
    place = run.placement
    return place.producer, place.accumulator, place.journaller, place.sampler


def _another_stack(without: Taken, with_it: Taken, ids: frozenset[str], of_runs: frozenset[str]) -> str:
    """Return a sentence if the applied settings of two runs do not allow a comparison; otherwise "". The tunables
    ``ids`` must be applied in the run ``with_it`` only. All other applied settings must be the same in both runs,
    except the tunables ``of_runs``.
    """
    stood, stood_with = ({one["id"]: one.get("value", "") for one in taken.applied} for taken in (without, with_it))
    early, lacking = sorted(ids & stood.keys()), sorted(ids - stood_with.keys())
    if early:
        return f"{', '.join(early)} {'was' if len(early) == 1 else 'were'} applied during the run without the change"
    if lacking:
        return (
            f"{', '.join(lacking)} {'was' if len(lacking) == 1 else 'were'} not applied during the run with the change"
        )
    rest = {name: value for name, value in stood_with.items() if name not in ids}
    others = (stood.keys() | rest.keys()) - of_runs
    odd = sorted(name for name in others if stood.get(name) != rest.get(name))
    return f"{', '.join(odd[:MOST_NAMES])} changed between the two runs of a round" if odd else ""
