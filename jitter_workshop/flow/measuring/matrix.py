"""Measure the matrix of this host: the times in which a cache line gets from one CPU to another. The measurement first
waits until no other program measures on this host."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from jitter_workshop.bench import matrix as runner
from jitter_workshop.bench import pairs as choosing
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.lock import host_turn
from jitter_workshop.errors import HostError
from jitter_workshop.flow.measuring import background_gate
from jitter_workshop.flow.measuring.measure import LABEL_LIMIT, TakeTurn
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.summary import summarise_host
from jitter_workshop.model.codec import to_plain
from jitter_workshop.model.host import Topology, mark_notes
from jitter_workshop.model.matrix import FORMAT_VERSION, CpuPair, Matrix
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import SENTENCE, clean, many
from jitter_workshop.session.ids import new_id, timestamp


@dataclass(frozen=True, slots=True)
class MatrixPlan:
    """Hold the plan of a matrix. ``sampled``: True if ``cpus`` are only a sample of the ``allowed`` CPUs."""

    topology: Topology
    cpus: tuple[int, ...]
    sampled: bool

    @property
    def pairs(self) -> tuple[CpuPair, ...]:
        return choosing.pairs_of(self.cpus)

    @property
    def sentence(self) -> str:
        """Return a sentence on the number of pairs, and on the longest time that the measurement takes."""
        allowed = self.topology.allowed
        whose = f"{len(self.cpus)} of {len(allowed)} CPUs, chosen by the topology" if self.sampled else allowed.named
        usual = max(round(runner.expected_s(len(self.pairs))), 1)
        return (
            f"{whose}: {many(len(self.pairs), 'pair')}, each measured {runner.PASSES} times for a millisecond "
            f"or two; this takes about {usual} s, at most {runner.LIMIT_S:g} s"
        )


def plan_matrix() -> MatrixPlan:
    """Return the plan of a matrix on this host. Raise HostError if this process may use fewer than two CPUs."""
    topology = read_topology(HostRoot())
    if len(topology.allowed) < 2:
        raise HostError(
            f"a matrix needs two CPUs, and this process may use only CPU {topology.allowed}",
            "widen its affinity mask or cpuset",
        )
    cpus = choosing.matrix_cpus(topology)
    return MatrixPlan(topology, cpus, len(cpus) < len(topology.allowed))


def measure_matrix(
    planned: MatrixPlan,
    cancel: CancelToken,
    *,
    label: str = "",
    wait_s: float = 0.0,
    begun: Callable[[], None] = lambda: None,
    told: runner.Told = lambda done, total: None,
    queued: Callable[[str], None] = lambda sentence: None,
    turn: TakeTurn | None = None,
) -> Matrix:
    """Measure a matrix on this host, and return it. ``begun`` is called when the wait for other measurements is over.
    If ``cancel`` stops the measurement, the result has only the measured pairs, and ``complete`` is False.

    Raise BusyError if another program still measures after ``wait_s`` seconds. Raise WaitStopped if ``cancel`` ended
    the wait. Raise HostError if this host cannot measure a matrix, MeasureError if nothing was measured.
    """
    with contextlib.ExitStack() as turns:
        still = turns.enter_context(turn(wait_s, cancel, queued)) if turn is not None else None
        if still is None:
            turns.enter_context(host_turn(wait_s, cancel, queued))
        begun()
        started_at = timestamp()
        if still is not None:
            still()
        with background_gate.HERE.measuring():
            measured = runner.measure_pairs(planned.pairs, told, cancel)
        return _as_matrix(planned, measured, started_at, label)


def _as_matrix(planned: MatrixPlan, measured: runner.Measured, started_at: str, label: str) -> Matrix:
    root = HostRoot()
    topology, cpus, ns = planned.topology, planned.cpus, measured.ns
    host = summarise_host(root, topology)
    notes = mark_notes(host.mark)
    if measured.why:
        left = many(len(planned.pairs) - len(ns), "pair")
        notes["one_way_ns"] = clean(f"{left} were not measured: {measured.why}", SENTENCE)
    if planned.sampled:
        notes["cpus"] = f"only {len(cpus)} CPUs of {topology.allowed.named} were measured, chosen by the topology"
    if outside := topology.online - topology.allowed:
        notes["groups"] = f"the matrix does not include {outside.named}, which this process may not use"
    return Matrix(
        format_version=FORMAT_VERSION,
        id=new_id(),
        label=clean(label, LABEL_LIMIT),
        started_at=started_at,
        duration_s=round(measured.duration_s, 3),
        clock=measured.clock,
        cpus=cpus,
        one_way_ns=tuple(tuple(ns.get((min(a, b), max(a, b))) for b in cpus) for a in cpus),
        clusters=choosing.clusters(topology, ns),
        groups=choosing.matrix_cpu_groups(topology),
        sampled=planned.sampled,
        complete=not measured.why and measured.stopped is None,
        topology=choosing.fingerprint(host.name, topology),
        host=to_plain(host),
        notes=notes,
    )
