"""Choose the CPUs of the measured threads, give the reasons, and describe how near CPUs are to each other.

All functions are pure. Two threads get the pair of CPUs that is best by these rules, the most important rule first:

- Both CPUs are isolated (``isolcpus``), and on different cores.
- At least one core is left for all other work.
- Both CPUs are on one memory node.
- The CPUs are on different cores.
- Both CPUs are isolated.
- Both CPUs share their last-level cache, or at least their package.
- Both CPUs are of one core type.
- The CPUs are away from the core of CPU 0, which does much of the host's housekeeping.
- The CPUs are not efficiency cores.

Several pairs may be equal by all these rules. Then the pair with the shortest measured time for a cache line is taken.

The journaller runs on the same node, but not on the core of CPU 0. If there is no such CPU, the run has no journaller.

On a host with only two cores of two threads each, both measured threads run on the second core. On different cores,
each thread would share its core with other work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Cpu, Topology
from jitter_workshop.model.record import dataclass, made_of
from jitter_workshop.model.spec import KINDS, TWO_THREADS, Placement

if TYPE_CHECKING:
    from jitter_workshop.model.matrix import PairTimes

NO_CPUS = CpuSet()

BESIDE_CPU_0 = "not on CPU 0, but on its sibling"
"""The words for a choice of CPUs that includes CPU 0's sibling."""

_NO_JOURNALLER = " No journaller runs (a third thread, which also reads each message):"

_ALIKE = 3
"""The largest number of equal cores that are compared, because a host may have hundreds of cores that differ in nothing
that matters."""


_AS_SHORT = 1.05
"""The ratio up to which two times of a cache line count as equal. Two measurements of the same pair of CPUs differ by
as much."""


@dataclass(frozen=True, slots=True)
class Wish:
    """Hold the user's request for a placement.

    - ``mode``: ``auto`` or ``none``. If the user names a CPU, ``mode`` is ignored.
    - ``producer``, ``accumulator``: the CPUs of two threads. For ``ack`` they are the sender and the receiver.
    - ``cpu``: the CPU of a workload with one thread.
    - ``within``: the isolated CPUs that the measured threads may use; None if no cpuset limits them. If ``within`` has
      too few CPUs for two threads, only the accumulator runs there.
    """

    workload: str = "ring"
    mode: str = "auto"
    producer: int | None = None
    accumulator: int | None = None
    journaller: int | None = None
    no_journaller: bool = False
    cpu: int | None = None
    within: CpuSet | None = None

    @property
    def splits(self) -> bool:
        """Return True if only the accumulator runs on the isolated CPUs ``within``, and all other threads run
        elsewhere."""
        if self.within is None or self.workload not in TWO_THREADS:
            return False
        return len(self.within) < 2 or (self.producer is not None and self.producer not in self.within)

    def may_have(self, cpu: int, *, accumulator: bool) -> bool:
        """Return True if the isolated CPUs permit a measured thread to run on ``cpu``.

        ``accumulator``: True if this thread is the accumulator.
        """
        if self.within is None:
            return True
        return (cpu in self.within) == (accumulator or not self.splits)

    @property
    def given(self) -> CpuSet:
        return CpuSet.of(c for c in (self.producer, self.accumulator, self.journaller, self.cpu) if c is not None)


def choose_cpus(
    topology: Topology, wish: Wish, isolated: CpuSet = NO_CPUS, lines: PairTimes | None = None
) -> Placement:
    """Return the CPUs of a run's threads on this host.

    - ``wish``: the user's request.
    - ``isolated``: the CPUs that the scheduler leaves alone.
    - ``lines``: the times of a cache line between this host's CPUs; None if they were not measured.

    Raise UsageError if the request contradicts itself. Raise HostError if the host cannot meet the request, or if this
    process may not use a CPU.
    """
    allowed = topology.allowed
    if not allowed:
        raise HostError(
            "none of the CPUs that this process may use is online",
            "widen the affinity mask or the cpuset of this process",
        )
    _check_wish(topology, wish)
    wish = _one_thread_of_a_core(topology, wish)
    if wish.within is not None:
        _check_within(topology, wish, wish.within & allowed)
    if wish.workload in TWO_THREADS:
        if len(allowed) == 1:
            raise HostError(
                f"{_named(wish.workload)} needs two CPUs, and this process may use only CPU {allowed}",
                "use '--workload spin'",
            )
        return _pair_of(topology, wish, isolated & allowed, lines)
    return _single(topology, wish, isolated & allowed)


def check_realtime(topology: Topology, placement: Placement, threads: int, within: CpuSet | None = None) -> None:
    """Raise HostError if the run's real-time threads (SCHED_FIFO) would leave no CPU to other work.

    Such threads never sleep, so the host would stop. ``threads``: the number of measured threads. ``within``: the CPUs
    of the isolated cpuset if the whole measuring process is in it; else None. In this case, the process's other threads
    also need a CPU of this cpuset.
    """
    used = CpuSet.of(placement.cpus)
    if within is not None and not within - used:
        raise HostError(f"SCHED_FIFO on CPU {within} would leave no CPU to the other threads of the measuring process")
    free = bool(topology.online - used) if used else len(topology.online) > threads
    if not free:
        raise HostError(
            "SCHED_FIFO on these CPUs would leave no CPU to the rest of the host",
            "measure with '--sched other', or with fewer threads",
        )


def _check_wish(topology: Topology, wish: Wish) -> None:
    if wish.mode not in ("auto", "none"):
        raise UsageError(f"there is no placement '{wish.mode}'", "choose 'auto' or 'none'")
    if wish.workload in TWO_THREADS and wish.cpu is not None:
        raise UsageError(
            "--cpu is only for the workloads spin and wakeup",
            f"for {_named(wish.workload)} use --producer-cpu and --accumulator-cpu",
        )
    ring_cpus = {"--producer-cpu": wish.producer, "--accumulator-cpu": wish.accumulator}
    ring_cpus["--journaller-cpu"] = wish.journaller
    if wish.workload not in TWO_THREADS:
        given = [name for name, cpu in ring_cpus.items() if cpu is not None]
        if given:
            raise UsageError(f"{given[0]} is only for the workload ring", f"for {wish.workload} use --cpu")
    elif wish.workload != "ring" and wish.journaller is not None:
        raise UsageError(
            f"--journaller-cpu is only for the ring; {wish.workload} has two threads", "leave out --journaller-cpu"
        )
    if wish.no_journaller and wish.journaller is not None:
        raise UsageError("--journaller-cpu and --no-journaller contradict each other", "use only one of these options")
    seen: dict[int, str] = {}
    for name, cpu in {**ring_cpus, "--cpu": wish.cpu}.items():
        if cpu is None:
            continue
        check_cpu(topology, cpu)
        if cpu in seen:
            raise UsageError(
                f"CPU {cpu} is given twice ({seen[cpu]} and {name})", "threads that wait for each other need a CPU each"
            )
        seen[cpu] = name


def _check_within(topology: Topology, wish: Wish, within: CpuSet) -> None:
    """Raise HostError if the isolated CPUs ``within`` cannot meet the request."""
    if wish.mode == "none" and not wish.given:
        raise HostError(
            "'--placement none' cannot use isolated CPUs: the scheduler moves no threads between isolated CPUs"
        )
    if wish.splits:
        _check_split(topology, wish, within)
        return
    if wish.given - within:
        raise HostError(
            f"no measured thread can run on CPU {wish.given - within}, because only CPU {within} is isolated"
        )


def _check_split(topology: Topology, wish: Wish, within: CpuSet) -> None:
    """Raise HostError if the accumulator cannot run on the isolated CPUs ``within``.

    Raise HostError also if the other measured threads cannot run on other CPUs.
    """
    first, last, *_ = KINDS[wish.workload].threads
    if wish.accumulator is not None and wish.accumulator not in within:
        raise HostError(
            f"the {last} cannot run on CPU {wish.accumulator}, because only CPU {within} is isolated",
            "leave --accumulator-cpu out, or restore the isolation first",
        )
    inside = within & CpuSet.of(c for c in (wish.producer, wish.journaller) if c is not None)
    if inside:
        raise HostError(
            f"no thread except the {last} can run on the isolated CPU {inside}",
            f"choose another CPU for the {first if wish.producer in inside else 'journaller'}",
        )
    if not topology.allowed - within:
        raise HostError(
            f"{_named(wish.workload)} needs a CPU in addition to the isolated CPU {within}", "use '--workload spin'"
        )


def _one_thread_of_a_core(topology: Topology, wish: Wish) -> Wish:
    """Return the request with one isolated CPU, so that the accumulator has its core alone.

    The request stays unchanged if its isolated CPUs are on several cores. It stays unchanged if the user chose one of
    these CPUs for another thread. It also stays unchanged if the host has too few other cores.
    """
    within = wish.within or NO_CPUS
    others = wish.given - CpuSet.of(c for c in (wish.accumulator,) if c is not None)
    if len(within) < 2 or wish.workload not in TWO_THREADS or others & within:
        return wish
    keep = CpuSet((within.cpus[0] if wish.accumulator is None else wish.accumulator,))
    outside = topology.allowed - within
    one_core = not within - keep - topology.siblings_of(keep)
    spare = outside - topology.siblings_of(CpuSet(outside.cpus[:1])) - CpuSet(outside.cpus[:1])
    return made_of(Wish, wish, within=keep) if one_core and spare and keep & within else wish


def check_cpu(topology: Topology, number: int) -> None:
    """Raise HostError if a CPU does not exist, is offline, or may not be used by this process.

    The message has the reason.
    """
    cpu = topology.cpu(number)
    if cpu is None:
        raise HostError(f"this host has no CPU {number}", f"CPUs online: {topology.online}")
    if not cpu.online:
        raise HostError(f"CPU {number} is offline", f"CPUs online: {topology.online}")
    if not cpu.allowed:
        raise HostError(
            f"CPU {number} is outside this process's affinity mask or cgroup", f"CPUs allowed: {topology.allowed}"
        )


def _accumulator(workload: str) -> str:
    """Return the name of the workload's receiving thread. A run is judged by the latency of this thread."""
    return next(name for name, field in KINDS[workload].threads.items() if field == "accumulator")


def _named(workload: str) -> str:
    """Return a workload's name as it is used in a sentence, such as ``the ring``."""
    return "the ring" if workload == "ring" else workload


def _pair_of(topology: Topology, wish: Wish, isolated: CpuSet, lines: PairTimes | None) -> Placement:
    producer, accumulator, shortest = _pair(topology, wish, isolated, lines)
    journaller = _third(topology, wish, isolated, producer, accumulator)
    on = journaller is not None
    if wish.mode == "none" and not wish.given:
        return Placement(mode="none", journaller_on=on, why=_why_none(topology, wish, on))
    used = CpuSet.of(c for c in (producer, accumulator, journaller) if c is not None)
    left, housekeeping = _left(topology, used)
    return Placement(
        inside=(_accumulator(wish.workload),) if wish.splits else (),
        mode="chosen" if wish.given else "auto",
        producer=producer,
        accumulator=accumulator,
        journaller=journaller,
        journaller_on=on,
        hot=used.cpus if left else (accumulator,),
        housekeeping=housekeeping.cpus,
        why=_why_ring(topology, wish, isolated, producer, accumulator, journaller, shortest),
        line=shortest,
    )


def _left(topology: Topology, used: CpuSet) -> tuple[CpuSet, CpuSet]:
    """Return two sets: the allowed CPUs that a run does not use, and the housekeeping CPUs among them.

    If possible, the housekeeping CPUs are on other cores than the run.
    """
    left = topology.allowed - used
    return left, (left - topology.siblings_of(used)) or left


def _pair(topology: Topology, wish: Wish, isolated: CpuSet, lines: PairTimes | None) -> tuple[int, int, str]:
    """Return the producer's CPU, the accumulator's CPU, and a text.

    The pair has the best rank among all pairs with the CPUs that the user named. If the measured time of a cache line
    decided between equal pairs, the text states it. Otherwise the text is "". Raise HostError if no pair is left.
    """
    if wish.producer is not None and wish.accumulator is not None:
        return wish.producer, wish.accumulator, ""
    pool = [c for c in _candidates(topology, isolated, wish) if c.id != wish.journaller]
    firsts = pool if wish.producer is None else [_cpu(topology, wish.producer)]
    seconds = pool if wish.accumulator is None else [_cpu(topology, wish.accumulator)]
    firsts = [c for c in firsts if wish.may_have(c.id, accumulator=False)]
    seconds = [c for c in seconds if wish.may_have(c.id, accumulator=True)]
    ordered = wish.producer is None and wish.accumulator is None and not wish.splits
    pairs = [(a, b) for a in firsts for b in seconds if a.id < b.id or (not ordered and a.id != b.id)]
    if not pairs:
        raise HostError(
            f"no CPU is left for the second thread of the ring (CPUs allowed: {topology.allowed})",
            "give CPUs for fewer threads, or use --no-journaller",
        )
    best = min(pairs, key=lambda pair: _rank_pair(topology, isolated, *pair))
    found = None if lines is None else _shortest(topology, wish, isolated, lines, best)
    return found or (best[0].id, best[1].id, "")


def _shortest(
    topology: Topology, wish: Wish, isolated: CpuSet, lines: PairTimes, best: tuple[Cpu, Cpu]
) -> tuple[int, int, str] | None:
    """Return the pair with the shortest measured time of a cache line, and words about it.

    All compared pairs have the same rank as ``best``, apart from the CPUs' numbers. If several times are nearly equal,
    the pair with the lowest numbers is taken. So the choice does not change with each measurement. Return None if fewer
    than two such pairs were measured.
    """
    wanted = _rank_pair(topology, isolated, *best)[:_NUMBERS]
    near = same_core(*best), best[0].node == best[1].node
    ordered = wish.producer is None and wish.accumulator is None and not wish.splits
    alike: list[tuple[float, int, int]] = []
    for (low, high), ns in sorted(lines.ns.items(), key=lambda one: one[1]):
        if len(alike) > 1 and ns > alike[0][0] * _AS_SHORT:
            break
        for first, second in ((low, high),) if ordered else ((low, high), (high, low)):
            a, b = topology.cpu(first), topology.cpu(second)
            if a is None or b is None or (same_core(a, b), a.node == b.node) != near:
                continue
            may_be = _may_be(wish, a, wish.producer, False) and _may_be(wish, b, wish.accumulator, True)
            if may_be and _rank_pair(topology, isolated, a, b)[:_NUMBERS] == wanted:
                alike.append((ns, first, second))
    if len(alike) < 2:
        return None
    ns, first, second = min((one for one in alike if one[0] <= alike[0][0] * _AS_SHORT), key=lambda one: one[1:])
    said = f"a cache line takes {ns:.0f} ns, measured {lines.measured}"
    return first, second, f"the fastest of several equally placed pairs ({said})"


def _may_be(wish: Wish, cpu: Cpu, given: int | None, accumulator: bool) -> bool:
    """Return True if the request lets a measured thread run on ``cpu``.

    ``given``: the CPU that the request names for this thread; None for none. ``accumulator``: True if this thread is
    the accumulator.
    """
    if given is not None:
        return cpu.id == given
    inside = wish.within is None or wish.splits or cpu.id in wish.within
    free = cpu.online and cpu.allowed and inside and cpu.id not in wish.given
    return free and wish.may_have(cpu.id, accumulator=accumulator)


def _rank_pair(topology: Topology, isolated: CpuSet, a: Cpu, b: Cpu) -> tuple[object, ...]:
    """Return the rank of a pair of CPUs for sorting; the best pair has the smallest rank.

    The rank follows the rules in this module's docstring. The last parts of the rank are the CPUs' numbers.
    """
    together, quiet = same_core(a, b), a.id in isolated and b.id in isolated
    return (
        together or not quiet,
        _crowded(topology, a, b) or (together and 0 in a.smt_siblings),
        a.node != b.node or (together and 0 in a.smt_siblings),
        together,
        not quiet,
        not topology.allowed - a.smt_siblings - b.smt_siblings - CpuSet.of([a.id, b.id]),
        not share_cache(topology, a, b),
        a.package != b.package,
        a.core_type != b.core_type,
        (a.id == 0) + (b.id == 0),
        (0 in a.smt_siblings) + (0 in b.smt_siblings),
        (a.core_type == "efficiency") + (b.core_type == "efficiency"),
        a.id,
        b.id,
    )


_NUMBERS = -2
"""The index at which the numbers of the CPUs begin in a rank of :func:`_rank_pair`."""


def _crowded(topology: Topology, a: Cpu, b: Cpu) -> bool:
    """Return True if no core is left for other work, so that this work shares the cores of these two CPUs."""
    used = CpuSet.of([a.id, b.id])
    return bool(_left(topology, used)[1] & topology.siblings_of(used))


def _third(topology: Topology, wish: Wish, isolated: CpuSet, producer: int, accumulator: int) -> int | None:
    """Return the journaller's CPU; None if the run has no journaller.

    The CPU is on the pair's memory node, and on a core without another measured thread. A CPU of CPU 0's core is used
    only if this CPU is isolated. At least one CPU is left for housekeeping.
    """
    if wish.journaller is not None or wish.no_journaller or wish.workload != "ring":
        return wish.journaller
    first, second = _cpu(topology, producer), _cpu(topology, accumulator)
    busy = topology.siblings_of(CpuSet.of([producer, accumulator])) | CpuSet.of([producer, accumulator])
    fits = [
        c
        for c in (_cpu(topology, n) for n in topology.allowed - busy)
        if wish.may_have(c.id, accumulator=False)
        and c.node in (first.node, second.node)
        and (c.id in isolated or 0 not in c.smt_siblings)
        and topology.allowed - busy - CpuSet.of([c.id]) - c.smt_siblings
    ]

    def rank(c: Cpu) -> tuple[object, ...]:
        return (
            c.id not in isolated,
            not share_cache(topology, c, second),
            c.package != second.package,
            c.core_type != first.core_type,
            0 in c.smt_siblings,
            c.id < producer,
            c.id,
        )

    return min(fits, key=rank).id if fits else None


def _single(topology: Topology, wish: Wish, isolated: CpuSet) -> Placement:
    """Return the placement of the one thread of ``spin`` or ``wakeup``."""

    def rank(c: Cpu) -> tuple[object, ...]:
        return (c.id not in isolated, c.id == 0, 0 in c.smt_siblings, c.core_type == "efficiency", c.id)

    who = next(iter(KINDS[wish.workload].threads))
    if wish.cpu is None and wish.mode == "none":
        return Placement(mode="none", why=f"The scheduler may move the {who} between CPUs {topology.allowed}.")
    number = wish.cpu if wish.cpu is not None else min(_candidates(topology, isolated, wish), key=rank).id
    left, housekeeping = _left(topology, CpuSet.of([number]))
    if wish.cpu is not None:
        why = f"The {who} runs on CPU {number}, as you asked."
    elif number in isolated:
        why = f"The {who} runs on CPU {number}, which is isolated from the scheduler."
    elif number != 0 and len(topology.allowed) > 1:
        why = f"The {who} runs on CPU {number}, because CPU 0 does most of the housekeeping."
    else:
        why = f"The {who} runs on CPU {number}."
    if housekeeping & topology.siblings_of(CpuSet.of([number])):
        why += f" Housekeeping (CPU {left}) shares this core, because no other core is left."
    if not left:
        why += " This is the only CPU, so all other tasks run on this CPU and show up as stalls."
    return Placement(
        mode="auto" if wish.cpu is None else "chosen",
        sampler=number,
        hot=(number,),
        housekeeping=housekeeping.cpus,
        why=why,
    )


def _candidates(topology: Topology, isolated: CpuSet, wish: Wish) -> list[Cpu]:
    """Return some of the allowed CPUs: a few of each kind.

    The CPUs of one kind are equal for the rules. The returned CPUs are enough to find the best pair, and few enough to
    compare all pairs.
    """
    groups: dict[tuple[object, ...], list[Cpu]] = {}
    for cpu in topology.cpus:
        inside = wish.within is None or wish.splits or cpu.id in wish.within
        if not (cpu.online and cpu.allowed and inside):
            continue
        cache = topology.last_level_cache(cpu.id)
        alike = (cpu.package, cpu.node, cache.cpus.cpus if cache else None, cpu.core_type, cpu.id in isolated)
        group = groups.setdefault((*alike, 0 in cpu.smt_siblings), [])
        cores = {(c.package, c.core) for c in group}
        # Threads of a core come after whole cores: they count only where there are too few cores.
        if len(cores) < _ALIKE or ((cpu.package, cpu.core) in cores and len(group) < _ALIKE * 2):
            group.append(cpu)
    return sorted((c for group in groups.values() for c in group), key=lambda c: c.id)


def _cpu(topology: Topology, number: int) -> Cpu:
    found = topology.cpu(number)
    assert found is not None
    return found


def _why_none(topology: Topology, wish: Wish, journaller_on: bool) -> str:
    *others, last = (name for name in KINDS[wish.workload].threads if name != "journaller" or journaller_on)
    text = f"The scheduler may move {', '.join(others)} and {last} between CPUs {topology.allowed}."
    return text + (_why_no_journaller(topology, wish) if wish.workload == "ring" and not journaller_on else "")


def _why_no_journaller(topology: Topology, wish: Wish) -> str:
    if wish.no_journaller:
        return " No journaller runs, as you asked."
    if wish.within is not None and not wish.splits:
        return f"{_NO_JOURNALLER} CPU {wish.within} has no core for it."
    count = len(topology.allowed)
    if count < 4:
        return f"{_NO_JOURNALLER} {count} CPUs leave no core for it."
    nodes = {_cpu(topology, cpu).node for cpu in topology.allowed}
    return f"{_NO_JOURNALLER} no core is left{' on the memory node of the other threads' if len(nodes) > 1 else ''}."


def _why_ring(
    topology: Topology,
    wish: Wish,
    isolated: CpuSet,
    producer: int,
    accumulator: int,
    journaller: int | None,
    shortest: str,
) -> str:
    """Return the reasons for the ring's placement, in words.

    ``shortest``: words about the time of a cache line, if the pair was chosen by this time; else "".
    """
    a, b = _cpu(topology, producer), _cpu(topology, accumulator)
    used = CpuSet.of(c for c in (producer, accumulator, journaller) if c is not None)
    left, housekeeping = _left(topology, used)
    parts = [pair_in_words(topology, a, b)]
    if a.core_type != b.core_type:
        parts.append("of different core types")
    elif a.core_type == "efficiency":
        parts.append("both of them efficiency cores")
    first, second, *_ = KINDS[wish.workload].threads
    if all(c in isolated for c in (producer, accumulator)):
        parts.append("isolated from the scheduler")
    elif wish.splits:
        parts.append(f"only CPU {accumulator} isolated from the scheduler")
    if 0 in topology.siblings_of(used):
        parts.append(BESIDE_CPU_0)
    elif 0 not in used and 0 in topology.allowed:
        parts.append("away from CPU 0")
    parts += [shortest] if shortest else []
    text = f"{first.capitalize()} on CPU {producer}, {second} on CPU {accumulator}"
    text += f", journaller on CPU {journaller}" if journaller is not None else ""
    text += (", as you asked: " if wish.given else ": ") + ", ".join(parts) + "."
    if journaller is None and wish.workload == "ring":
        text += _why_no_journaller(topology, wish)
    if wish.splits and first in KINDS[wish.workload].rated:
        text += f" The {first} runs outside the isolated CPUs. The result includes the stalls of the {first}."
    if not left:
        # The user may have chosen the hot CPU for the producer, on which the boxes show no housekeeping.
        if wish.given:
            text += f" No CPU is left for other tasks. Each task on CPU {accumulator} delays the {second}."
        elif wish.splits or accumulator in isolated:
            text += f" CPU {producer} also runs all other tasks."
        else:
            text += (
                f" CPU {producer} is left to other tasks, too. Until CPU {accumulator} is isolated, they may run there,"
            )
            text += f" and each of them delays the {second}."
    elif housekeeping & topology.siblings_of(used):
        text += f" Housekeeping (CPU {left}) shares cores with the run, because no other core is left."
    return text


def same_core(a: Cpu, b: Cpu) -> bool:
    """Return True if both CPUs are threads of one core."""
    return b.id in a.smt_siblings


def share_cache(topology: Topology, a: Cpu, b: Cpu) -> bool:
    """Return True if both CPUs have the same last-level cache.

    If the kernel shows no caches, return True if both CPUs are in the same package.
    """
    cache = topology.last_level_cache(a.id)
    return b.id in cache.cpus if cache else a.package == b.package


def pair_in_words(topology: Topology, a: Cpu, b: Cpu) -> str:
    """Return words on how far a message between two CPUs goes, such as ``different cores that share their last-level
    cache``."""
    if same_core(a, b):
        return "two hardware threads of one core, which slow each other down"
    if a.node != b.node:
        return f"cores of the memory nodes {a.node} and {b.node}: every message goes from one node to the other"
    if share_cache(topology, a, b):
        known = topology.last_level_cache(a.id) is not None
        return f"different cores {'that share their last-level cache' if known else 'of one package'}"
    return "different cores without a common cache: every message goes from one core to the other"


def how_near(topology: Topology, cpus: CpuSet) -> str:
    """Return a few words on how near these online CPUs are to each other; "" for fewer than two CPUs."""
    members = [cpu for number in cpus if (cpu := topology.cpu(number)) is not None]
    pairs = [(a, b) for a in members for b in members if a.id < b.id]
    nodes = sorted({cpu.node for cpu in members})
    if not pairs:
        return ""
    if len(nodes) > 1:
        return f"cores of the memory nodes {', '.join(map(str, nodes[:-1]))} and {nodes[-1]}"
    if any(same_core(a, b) for a, b in pairs):
        if not all(same_core(a, b) for a, b in pairs):
            return "some of these CPUs are threads of one core"
        if any(cpu.online and cpu.node != nodes[0] for cpu in topology.cpus):
            others = "the other cores are on other nodes"
        elif topology.online - cpus - topology.siblings_of(cpus):
            others = "the other core is left for other work"
        else:
            others = "there is no other core"
        return f"threads of one core, which slow each other down: {others}"
    shared = [share_cache(topology, a, b) for a, b in pairs]
    if all(shared):
        known = all(topology.last_level_cache(cpu.id) is not None for cpu in members)
        return "cores that share a cache" if known else "cores of one package"
    return "cores of which some share a cache" if any(shared) else "cores without a common cache"
