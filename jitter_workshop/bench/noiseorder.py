"""Choose the CPUs of a noise. Raise an error if this host cannot make the noise.

This module finds all faults that can be known before a run. The noise itself reports a fault that appears when the
noise starts.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass

from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.model.codec import CodecError
from jitter_workshop.model.noise import MOST_BURSTS, NOISE_KINDS, Noise
from jitter_workshop.model.noise import noise as noise_called
from jitter_workshop.model.spec import Placement
from jitter_workshop.model.text import SHORT, clean

STAT_REFRESH = "/proc/sys/vm/stat_refresh"
"""The file that tells if this process has root's rights: only root may write it."""
LONGEST_S = 604_800
SHORTEST_PERIOD_NS = 1_000_000
LONGEST_PERIOD_NS = 200_000_000
"""The longest period of bursts, in ns, that native code accepts. A noise can end only between two of its sleeps, so no
sleep may be longer."""
_LONGEST_NAME = 15


@dataclass(frozen=True, slots=True)
class NoiseOrder:
    """Hold the order for a noise.

    - ``hot``: the CPU to disturb.
    - ``other``: the CPU for the noise's threads that must not run on the hot CPU; -1 for none.
    - ``away``: the CPU to which the noise moves a measured thread; -1 for none.
    - ``cpus``: one CPU for each thread, if the noise has many threads; -1 lets the scheduler choose.
    - ``name``: the name of the threads.
    - ``period_ns``: the approximate time between two bursts; 0 for the usual period of this kind.
    """

    kind: str
    hot: int
    other: int
    away: int
    cpus: tuple[int, ...]
    seconds: int
    name: str
    seed: int = 1
    most_bursts: int = MOST_BURSTS
    period_ns: int = 0


def known(kind: str) -> Noise:
    """Return a kind of noise by its id. Raise UsageError for an unknown id."""
    if kind not in NOISE_KINDS:
        raise UsageError(f"there is no noise '{clean(kind, SHORT)}'", f"known: {', '.join(NOISE_KINDS)}")
    return noise_called(kind)


def order_for(
    kind: str,
    placement: Placement,
    allowed: Collection[int],
    seconds: int,
    name: str = "",
    seed: int = 1,
    period_ns: int | None = None,
    busy: int = 0,
) -> NoiseOrder:
    """Return the order for a noise beside a run with this placement.

    - ``allowed``: the CPUs that our processes may use.
    - ``name``: the name of the noise's threads; "" for the name of its kind.
    - ``period_ns``: the time between two bursts; None for the usual period of this kind.
    - ``busy``: the number of measured threads that are always busy (``model.spec.busy_threads``); 0 if it is not known.

    Raise UsageError if the kind is unknown or the period is wrong. Raise HostError if this host cannot make the noise.
    """
    noise = known(kind)
    check_period(noise, period_ns)
    measured = _measured(placement)
    hot = measured[0] if measured else max(allowed)
    if noise.on_hot and hot not in allowed:
        raise HostError(
            f"the noise {kind} cannot reach CPU {hot}, because this CPU is isolated",
            "measure on another CPU, or restore the isolation first",
        )
    others = [cpu for cpu in sorted(allowed) if cpu != hot]
    free = [cpu for cpu in others if cpu not in measured]
    if noise.cpus > 1 and not others:
        raise HostError(f"the noise {kind} needs two CPUs, and this process may use only one")
    if noise.apart and not free:
        raise HostError(
            f"the noise {kind} needs a CPU without a measured thread, but each of the {len(allowed)} CPUs has one",
            "measure with spin, or choose another noise",
        )
    if noise.root and not os.access(STAT_REFRESH, os.W_OK):
        raise HostError(f"the noise {kind} needs root's rights, because it {noise.root}", "choose another noise")
    # The moving thread would have to wait on the CPU it sends the other thread to, so a third CPU is better.
    other = (free or others or [-1])[0]
    away = next((cpu for cpu in others if cpu != other), other)
    return NoiseOrder(
        kind=kind,
        hot=hot,
        other=other,
        away=away if noise.aimed else -1,
        cpus=_each(kind, allowed, measured, busy),
        seconds=min(max(1, seconds), LONGEST_S),
        name=(name or kind)[:_LONGEST_NAME],
        seed=seed,
        period_ns=period_ns or 0,
    )


def _each(kind: str, allowed: Collection[int], measured: Collection[int], busy: int) -> tuple[int, ...]:
    """Return one CPU for each thread, if the noise has many threads. Return an empty tuple for other noises.

    The value -1 lets the scheduler choose the CPU. ``busy``: the number of measured threads that are always busy.
    """
    if kind == "spinners":
        return tuple(sorted(allowed))
    if kind in ("unbound", "terminal"):
        # The same number before and after the measured CPUs are isolated: only then do both runs have an equal load.
        cpus = len({*allowed, *measured})
        # Equally loaded CPUs give the load balancer no reason to move a thread (kernel/sched/fair.c).
        equal = busy > 0 and (cpus + 2 + busy) % cpus == 0
        return (-1,) * (cpus + (1 if equal else 2))
    return ()


def check_period(noise: Noise, period_ns: int | None) -> None:
    """Raise UsageError if this noise cannot make bursts with this period."""
    if period_ns is None:
        return
    if not noise.period_ns:
        raise UsageError(
            f"the noise {noise.id} happens only once in a run, so it has no period", "leave the period out"
        )
    shortest_ns = max(SHORTEST_PERIOD_NS, 2 * noise.busy_ns)
    if not shortest_ns <= period_ns <= LONGEST_PERIOD_NS:
        raise UsageError(
            f"the period of the noise {noise.id} must be from {shortest_ns / 1e6:g} to "
            f"{LONGEST_PERIOD_NS / 1e6:g} ms, not {period_ns / 1e6:g} ms"
        )


def check_order(order: NoiseOrder) -> None:
    """Raise CodecError if a noise process cannot carry out this order."""
    if order.kind not in NOISE_KINDS or noise_called(order.kind).by != "child":
        raise CodecError(f"'{clean(order.kind, SHORT)}' is not a noise that runs in a process of its own")
    if not 0 < order.seconds <= LONGEST_S:
        raise CodecError(f"a noise lasts from 1 to {LONGEST_S} s")
    if order.period_ns:
        try:
            check_period(noise_called(order.kind), order.period_ns)
        except UsageError as error:
            raise CodecError(error.message) from error


def _measured(placement: Placement) -> tuple[int, ...]:
    """Return the CPUs of the measured threads. A noise disturbs the first CPU: the CPU of the receiving thread or of
    the sampler.
    """
    placed = (placement.accumulator, placement.sampler, placement.producer, placement.journaller)
    return tuple(dict.fromkeys(cpu for cpu in placed if cpu is not None))
