"""Define the kinds of noise, and the log that a running noise writes of its own bursts.

A burst is one action of a noise on one CPU, with a start and an end. Each kind of noise says how the kernel's trace
should show the noise's bursts. So the causes that are found in a trace can be compared with the log. Standard library
only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from jitter_workshop.model.irq_rows import CALLING, TIMER_IRQS
from jitter_workshop.model.record import dataclass

MOST_BURSTS = 100_000
"""The largest number of bursts in a log; later bursts are only counted."""

ExpectedCause = tuple[str, str]
"""A cause in a trace: its kind (``model.evidence.CAUSE_KINDS``) and its name. A name that ends in ``*`` matches all
names with that beginning. ``{name}`` in a name stands for the name of the noise's threads."""


@dataclass(frozen=True, slots=True)
class What:
    """Hold one action of a noise.

    - ``causes``: the causes that a trace shows for the action. The main cause comes first.
    - ``length``: ``logged`` if the log has the length of each burst. ``measured`` if all bursts have one length, which
      was measured beforehand.
    """

    causes: tuple[ExpectedCause, ...]
    length: Literal["logged", "measured"] = "logged"


@dataclass(frozen=True, slots=True)
class Noise:
    """Hold one kind of noise.

    - ``what``: what the noise does, in a sentence.
    - ``found_as``: how a trace shows the noise, in a sentence.
    - ``treatment``: how to keep the noise away, in a sentence.
    - ``cpus``: number of CPUs that the noise needs.
    - ``apart``: True if at least one of these CPUs must be a CPU without a measured thread.
    - ``spread``: True if the scheduler or the kernel chooses the CPUs of the noise. Such a noise can be made even on a
      host with isolated CPUs.
    - ``hides``: True if a hunt can hide this kind of noise. False if a trace cannot tell this kind from another kind,
      or if a learner cannot keep the noise away.
    - ``root``: the action of the noise that needs root's rights, "" if no action needs them.
    - ``by``: the process that makes the noise. ``child``: a process of its own. ``inside``: the measuring process.
      ``parent``: the parent of the measuring process.
    - ``aimed``: True if the noise needs the ids of the measured threads.
    - ``busy_ns``: approximate length of a burst.
    - ``period_ns``: approximate time from burst to burst.
    """

    id: str
    title: str
    what: str
    found_as: str
    treatment: str
    does: tuple[What, ...]
    cpus: int = 1
    apart: bool = False
    spread: bool = False
    hides: bool = True
    root: str = ""
    by: Literal["child", "inside", "parent"] = "child"
    aimed: bool = False
    busy_ns: int = 0
    period_ns: int = 0

    @property
    def on_hot(self) -> bool:
        """Return True if the noise can be made only by a thread that runs on the measured CPU. Such a noise cannot be
        made if this CPU is isolated."""
        return self.by == "child" and not (self.spread or self.apart or self.aimed)


_MINE: ExpectedCause = ("task", "{name}")

NOISES = (
    Noise(
        "spinners",
        "Spinners",
        "On every CPU a thread is busy for 3 ms, then sleeps for about 30 ms, as on a busy desktop.",
        "Another task runs on the hot CPU for milliseconds at a time. Tasks of the same name run on all other CPUs.",
        "Isolation keeps other tasks off the hot CPUs.",
        (What((_MINE,)),),
        spread=True,
        busy_ns=3_000_000,
        period_ns=33_000_000,
    ),
    Noise(
        "greedy",
        "A greedy thread",
        "One thread, bound to the hot CPU, is busy for half a millisecond, about fifty times a second.",
        "Another task runs on the hot CPU and on no other CPU.",
        "Move that thread to other CPUs (taskset), or isolate the hot CPU: at run time this moves a program's bound "
        "thread, but no bound kernel thread.",
        (What((_MINE,)),),
        busy_ns=500_000,
        period_ns=20_000_000,
    ),
    Noise(
        "timer",
        "Timers",
        "Ten times a second, a thread on the hot CPU arms eighty timers and sleeps. They expire in groups of eight.",
        "On the hot CPU, about a hundred more local timer interrupts come each second than in the quiet run. The new "
        "task runs only ten times.",
        "A timer expires on the CPU on which it was armed. Keep the thread that arms timers off the hot CPU.",
        (
            What(
                (("timer", "timerfd_tmrproc"), ("vector", "local_timer"), *(("irq", name) for name in TIMER_IRQS)),
                "measured",
            ),
            What((_MINE,)),
        ),
        period_ns=100_000_000,
    ),
    Noise(
        "softirq",
        "Network softirqs",
        "A thread on the hot CPU sends datagrams over loopback, each to two dozen sockets that no program reads.",
        "The count of the softirq NET_RX grows on the hot CPU. NET_RX takes more time than the task that sends.",
        "The CPU that sends loopback traffic also receives it. Send from another CPU, or let RPS move the receive "
        "work.",
        (What((("softirq", "NET_RX"), _MINE)),),
        busy_ns=150_000,
        period_ns=20_000_000,
    ),
    Noise(
        "workqueue",
        "Kernel work",
        "The kernel sums up its memory statistics on every CPU, because a program asks for them (vm.stat_refresh).",
        "A kworker of the hot CPU runs refresh_vm_stats.",
        "Find the program that asks for this work. The workqueue mask does not move this work: it is bound to a CPU.",
        (
            What(
                (
                    ("workqueue", "refresh_vm_stats"),
                    ("workqueue", "wq_barrier_func"),
                    ("task", "kworker/*"),
                    ("vector", "*"),
                ),
                "measured",
            ),
        ),
        cpus=2,
        root="writes /proc/sys/vm/stat_refresh",
        period_ns=20_000_000,
    ),
    Noise(
        "migration",
        "Forced migrations",
        "Ten times a second, the measured thread is moved to another CPU for 0.3 ms and then back.",
        "The measured thread migrates more often, and messages are received on two CPUs.",
        "Bind the thread, and find the program that changes its affinity.",
        (What((("migration", "*"), ("task", "migration/*"))),),
        cpus=2,
        aimed=True,
        period_ns=100_000_000,
    ),
    Noise(
        "faults",
        "Page faults",
        "A thread on the hot CPU touches new pages of memory and frees them.",
        "Another task runs on the hot CPU, mostly in the kernel. The task's page faults grow by thousands.",
        "Move the task to another CPU. Memory that a program touches early and locks (mlockall) has no later page "
        "faults.",
        (What((_MINE,)),),
        busy_ns=300_000,
        period_ns=20_000_000,
    ),
    Noise(
        "shootdown",
        "TLB shootdowns",
        "Another thread of the measuring process makes a page read-only and writable again, 200 times a second.",
        "TLB shootdowns grow on the hot CPU (TLB in /proc/interrupts), sent by a thread of the same process.",
        "Threads that share memory with a hot thread must not unmap or protect memory during the measurement.",
        (What((("vector", "flush_tlb_func"), ("vector", "call_function*")), "measured"),),
        cpus=2,
        by="inside",
        period_ns=5_000_000,
    ),
    Noise(
        "bandwidth",
        "A hog of memory bandwidth",
        "A thread on another CPU runs through 64 MiB of memory for about 15 ms in every 20 ms.",
        "No event of the kernel shows this noise. Only work that misses the caches becomes slower.",
        "Keep such work off the hot CPU's memory controller, or limit its bandwidth (resctrl, if the CPU has it).",
        (What((("no_event", ""),)),),
        cpus=2,
        apart=True,
        busy_ns=15_000_000,
        period_ns=20_000_000,
    ),
    Noise(
        "stall",
        "One long stop",
        "The whole measuring process is stopped once for 100 ms.",
        "No message arrives for 100 ms, but afterwards almost no message counts as late (coordinated omission).",
        "Measure latency from the time at which each message was due.",
        (What((("no_event", "asleep"), ("task", "idle"))),),
        by="parent",
    ),
    Noise(
        "unbound",
        "Ordinary tasks",
        "One or two more tasks than CPUs are each busy for 1 to 4 ms, then asleep up to 2.5 ms, on any CPU.",
        "The same few tasks run on the hot CPU and on all other CPUs, for milliseconds at a time.",
        "Isolation keeps other tasks off the hot CPUs.",
        (What((_MINE,)),),
        spread=True,
        hides=False,
        busy_ns=2_500_000,
        period_ns=2_800_000,
    ),
    Noise(
        "terminal",
        "Terminal output",
        "There are one or two more tasks than CPUs. Each is busy for 1 to 4 ms, prints, and sleeps for up to 2.5 ms. "
        "For most printed lines the kernel queues a work item.",
        "A kworker whose name begins with kworker/u runs flush_to_ldisc on the hot CPU.",
        "Leave the hot CPUs out of the workqueue mask, which says where unbound work may run.",
        (What((_MINE, ("workqueue", "flush_to_ldisc"), ("task", "kworker/u*"))),),
        spread=True,
        hides=False,
        busy_ns=2_500_000,
        period_ns=2_800_000,
    ),
    Noise(
        "disk",
        "Reads from a disk",
        "A thread on another CPU reads a file from the disk, not from the page cache, 500 times a second.",
        "The disk's interrupts grow on the hot CPU, if the affinity of these interrupts allows that CPU.",
        "Take the hot CPUs out of the affinity of the disk's interrupt (smp_affinity).",
        (What((("irq", "*"), ("softirq", "BLOCK"))),),
        cpus=2,
        spread=True,
        hides=False,
        period_ns=2_000_000,
    ),
    Noise(
        "network",
        "Packets from another CPU",
        "Two hundred times a second, a thread on another CPU sends eight datagrams over a loopback device. The mask of "
        "this device (rps_cpus) makes the hot CPU receive the datagrams.",
        "NET_RX and function calls from another CPU grow on the hot CPU, and no other task runs there.",
        "Take the hot CPU out of the mask of the receive queue (rps_cpus). The masks of interrupts have no effect.",
        (
            What(
                (
                    ("softirq", "NET_RX"),
                    ("vector", "rps_trigger_softirq"),
                    ("vector", "call_function*"),
                    ("vector", CALLING),
                )
            ),
        ),
        cpus=2,
        spread=True,
        hides=False,
        root="makes a network namespace",
        period_ns=5_000_000,
    ),
    Noise(
        "hwrng",
        "Random numbers from a device",
        "A thread on another CPU reads random numbers from /dev/hwrng, up to 500 times a second. The device interrupts "
        "once for each read.",
        "The interrupts of the random number device grow on the hot CPU, if their affinity allows that CPU.",
        "Take the hot CPUs out of the affinity of the device's interrupt (smp_affinity).",
        (What((("irq", "*"),)),),
        cpus=2,
        spread=True,
        hides=False,
        root="reads /dev/hwrng",
        period_ns=2_000_000,
    ),
)

HIDDEN_THREADS = "thief"
"""The name of a hidden noise's threads."""
NOISE_KINDS = tuple(noise.id for noise in NOISES)
HIDEABLE = tuple(noise.id for noise in NOISES if noise.hides and noise.by == "child" and not noise.aimed)
"""The kinds of noise that a hunt can hide. A noise ends with a run if it needs the measured threads or is made in their
process. A hunt has several runs, so it cannot hide such a noise."""


def noise(kind: str) -> Noise:
    """Return the noise of this kind. Raise KeyError for an unknown kind."""
    for one in NOISES:
        if one.id == kind:
            return one
    raise KeyError(kind)


class Burst(NamedTuple):
    """Hold one burst.

    - ``start``, ``end``: in ticks of the benchmark's clock.
    - ``start_ns``: the start on CLOCK_MONOTONIC.
    - ``taken_ns``: CPU time of the burst, 0 if not known. A thread measures this time by its own clock. For an
      interrupt, the time was measured beforehand.
    - ``what``: index into ``Noise.does``.
    """

    start: int
    end: int
    start_ns: int
    length_ns: int
    taken_ns: int
    cpu: int
    what: int


_RECORD = "<QQQIIHH"
_LARGEST = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Bursts:
    """Hold a noise's log.

    - ``does``: the actions of this kind of noise. The texts already contain the name of the noise's threads.
    - ``records``: the packed bursts.
    - ``unlogged``: the number of bursts that are not in the log, because the log was full.
    - ``total_ns``: CPU time of all bursts, as far as known.
    """

    kind: str
    does: tuple[What, ...]
    records: bytes
    unlogged: int = 0

    @property
    def count(self) -> int:
        return len(self.records) // _size() + self.unlogged

    @property
    def total_ns(self) -> int:
        return sum(burst.taken_ns for burst in self.list())

    def list(self) -> tuple[Burst, ...]:
        """Return the bursts in the order of the log, by start."""
        from struct import iter_unpack

        return tuple(map(Burst._make, iter_unpack(_RECORD, self.records)))


def pack_bursts(bursts: Iterable[Burst]) -> bytes:
    """Return bursts packed into records of one size. For a length above 4 s or a CPU number above 16 bits, the largest
    value is stored."""
    from struct import pack

    return b"".join(
        pack(_RECORD, b.start, b.end, b.start_ns, *(min(n, _LARGEST) for n in b[3:5]), min(b.cpu, 0xFFFF), b.what)
        for b in bursts
    )


def unpack_bursts(kind: str, name: str, records: bytes, unlogged: int) -> Bursts:
    """Return the log of a noise whose threads had the name ``name``. Raise ValueError if ``records`` is damaged."""
    if len(records) % _size() or len(records) > MOST_BURSTS * _size() or unlogged < 0:
        raise ValueError(f"{len(records)} bytes are not the log of a noise")
    does = fill_in_name(noise(kind).does, name)
    found = Bursts(kind, does, records, unlogged)
    last = 0
    for burst in found.list():
        if burst.what >= len(does) or burst.end < burst.start or burst.start < last:
            raise ValueError("a burst in the log is impossible")
        last = burst.start
    return found


def fill_in_name(does: tuple[What, ...], name: str) -> tuple[What, ...]:
    """Return copies of the actions. In the copies' causes, ``{name}`` is replaced by the name of the noise's
    threads."""
    return tuple(
        What(tuple((kind, name if hint == "{name}" else hint) for kind, hint in what.causes), what.length)
        for what in does
    )


def is_cause(expected: ExpectedCause, kind: str, name: str) -> bool:
    """Return True if the cause of a part of a stall is the expected cause. ``kind``, ``name``: the kind and the name of
    the part. A ``*`` at the end of the expected name stands for any ending."""
    wanted = expected[1]
    same = name.startswith(wanted[:-1]) if wanted.endswith("*") else name == wanted
    return kind == expected[0] and same


def _size() -> int:
    from struct import calcsize

    return calcsize(_RECORD)
