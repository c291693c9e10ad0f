"""Put writes in order, by the conditions that each write needs, makes or ends.

An apply, a restore, the end of a lease, and the script of ``plan --sh`` use this order. In a restore, a write means
that an old value is written back.

* A write *needs* a condition: it comes after writes that make the condition, and before writes that end it.
* A write *displaces* a group of settings: as a side effect of the write, the kernel overwrites these settings. Writes
  to that group come later.
* A write that *vacates* a CPU comes before the CPU goes offline, unless a stronger rule forbids that.

If these rules allow several orders, the given order stays. Sources: Documentation/core-api/cpu_hotplug.rst,
Documentation/admin-guide/cgroup-v2.rst, Documentation/admin-guide/cgroup-v1/cpusets.rst, kernel/cgroup/cpuset.c,
kernel/irq/cpuhotplug.c, drivers/net/virtio_net.c, Documentation/admin-guide/pm/intel_pstate.rst.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

CPUS = "every CPU is online"
BALANCED = "the top version 1 cpuset has load balancing on"
QUIET = "no service rewrites settings"
CYCLED = "the hot CPUs went offline and came back online"
VACANT = "nothing is bound to the CPUs that go offline"

_THERE = "there: "
"""The prefix of a condition without which a write cannot be made at all: a group, a controller or a menu entry
exists."""

_NONE: frozenset[str] = frozenset()
_SWITCH = re.compile(r"/sys/devices/system/cpu/cpu\d+/online|/sys/devices/system/cpu/smt/control")
_OF_CPU = re.compile(r"/sys/devices/system/(cpu/cpu\d+|cpu/cpufreq/policy\d+|machinecheck/machinecheck\d+)/")
_ACROSS = ("irq-across", "mask-across")
_SETS = "/sys/fs/cgroup/cpuset"
_OWN_SETS = ("jitter-workshop-hot", "jitter-workshop-rest")
_BY_PARTITIONS = frozenset({"masks", "governors", "workqueues"})


class OrderingFacts(NamedTuple):
    """Hold the facts about one write that decide its order.

    - ``group``: the group of its setting.
    - ``needs``, ``makes``, ``ends``: the conditions that the write needs, makes and ends.
    - ``displaces``: the groups of settings that the kernel overwrites as a side effect.
    - ``vacates``: True if the write takes work off CPUs.
    """

    group: str = ""
    needs: frozenset[str] = _NONE
    makes: frozenset[str] = _NONE
    ends: frozenset[str] = _NONE
    displaces: frozenset[str] = _NONE
    vacates: bool = False


def ordering_facts(path: str, kind: str, value: str) -> OrderingFacts:
    """Return the facts about a write of ``value`` to the setting ``path``."""
    if kind == "unit":
        return _condition(OrderingFacts("services"), QUIET, value != "active")
    found = _facts(path, kind, value)
    there = frozenset({f"{_THERE}{path.rpartition('/')[0]}"}) if path.startswith("/") else _NONE
    return found._replace(needs=found.needs | there | {QUIET})


def _facts(path: str, kind: str, value: str) -> OrderingFacts:
    if _SWITCH.fullmatch(path):
        return _switch(kind, value)
    if path.startswith("sched_setaffinity("):
        return OrderingFacts("masks", needs=frozenset({CPUS}), vacates=True)
    if path.startswith("sugov("):
        return OrderingFacts("governors", needs=frozenset({CPUS}))
    if path.startswith("cgroup("):
        target = frozenset({f"{_THERE}{value}", BALANCED})
        return OrderingFacts("places", needs=target, displaces=frozenset({"masks"}))
    if kind in _ACROSS:
        return OrderingFacts("queues")
    if path.startswith(("/proc/irq/", "/sys/class/net/")):
        return OrderingFacts("interrupts", needs=frozenset({CPUS}), vacates=True)
    if "/cgroup/" in path:
        return _of_groups(path, kind, value)
    if kind == "folder":
        return _folder(path, value, "folders")
    if path.endswith("/scaling_governor"):
        found = OrderingFacts("governors", needs=frozenset({CPUS}), displaces=frozenset({"preferences"}))
        return _condition(found, _free(path), value != "performance")
    if path.endswith("/energy_performance_preference"):
        free = _NONE if value == "performance" else frozenset({_free(path)})
        return OrderingFacts("preferences", needs=free | {CPUS})
    if path.startswith("/sys/devices/virtual/workqueue/"):
        return OrderingFacts("workqueues")
    if kind in ("grub-entry", "grub-once", "grub-next"):
        return _of_entry(path, kind, value)
    return OrderingFacts(needs=frozenset({CPUS}) if _OF_CPU.match(path) else _NONE)


def _free(path: str) -> str:
    """Return the name of a condition on the frequency policy of the file ``path``. The condition is that the policy
    accepts an energy preference. It is met if the policy's governor is not ``performance``."""
    return f"{path.rpartition('/')[0]} takes a preference"


def _switch(kind: str, value: str) -> OrderingFacts:
    """Return the facts of a write that takes a CPU offline, brings it online, or does both in turn."""
    drivers = frozenset({"queues"})
    if kind == "cpu-cycle" and value not in ("0", "1"):
        return OrderingFacts("cpus", needs=frozenset({VACANT}), makes=frozenset({CYCLED}), displaces=drivers)
    if value in ("0", "off", "forceoff"):
        return OrderingFacts("cpus", needs=frozenset({VACANT}), ends=frozenset({CPUS}), displaces=drivers)
    return OrderingFacts("cpus", makes=frozenset({CPUS}), displaces=drivers)


def _of_groups(path: str, kind: str, value: str) -> OrderingFacts:
    """Return the facts of a write to a control group of version 1 or 2.

    A partition is made and removed only while every CPU is online. At this moment, kernels before 6.2 set the affinity
    of each task outside the partition to the online CPUs. A CPU that is offline at this moment would be missing from
    these affinities.
    """
    folder, _, name = path.rpartition("/")
    top = folder.rpartition("/")[0]
    if kind == "controllers":
        handed = OrderingFacts("groups", displaces=frozenset({"masks"}))
        return _condition(handed, f"{_THERE}controller in {folder}", bool(value))
    if kind == "cgroup":
        found = _folder(path, value, "groups")
        return found if value != "absent" else found._replace(needs=frozenset({CPUS}), displaces=_BY_PARTITIONS)
    if kind == "cgroup-cpus":
        # The group may already be a partition; another list then means another partition.
        needs = frozenset({CPUS, f"{_THERE}controller in {top}"})
        list_ = OrderingFacts("groups", needs=needs, displaces=_BY_PARTITIONS)
        return _condition(list_, f"{_THERE}list of {folder}", bool(value.strip()))
    if name == "cpuset.cpus.partition":
        needs = frozenset({CPUS, CYCLED, f"{_THERE}controller in {top}", f"{_THERE}list of {folder}"})
        return OrderingFacts("partitions", needs=needs, displaces=_BY_PARTITIONS)
    if kind == "cpuset":
        set_ = OrderingFacts("sets", needs=frozenset({BALANCED, CYCLED}), displaces=frozenset({"masks"}))
        for condition in (f"{_THERE}{path}", f"{_THERE}/{name}"):
            set_ = _condition(set_, condition, value != "absent")
        return set_
    if name == "cpuset.sched_load_balance" and folder != _SETS:
        return OrderingFacts("balance")
    if name == "cpuset.sched_load_balance":
        on = value.strip() == "1"
        sets = _NONE if on else frozenset({f"{_THERE}/{own}" for own in _OWN_SETS})
        return _condition(OrderingFacts("balance", needs=sets), BALANCED, on)
    # A version 1 set of another program.
    return OrderingFacts("sets", needs=frozenset({CPUS}), displaces=frozenset({"masks"}), vacates=True)


def _of_entry(path: str, kind: str, value: str) -> OrderingFacts:
    """Return the facts of a write to one part of the GRUB menu entry for one boot."""
    folder = path.partition("(")[0].rpartition("/")[0]
    entry, words = f"{_THERE}entry in {folder}", f"{_THERE}parameters in {folder}"
    if kind == "grub-entry":
        return _condition(OrderingFacts(), entry, bool(value))
    if kind == "grub-once":
        return _condition(OrderingFacts(needs=frozenset({entry})), words, bool(value))
    return OrderingFacts(needs=frozenset({words}))


def _folder(path: str, value: str, group: str) -> OrderingFacts:
    return _condition(OrderingFacts(group), f"{_THERE}{path}", value != "absent")


def _condition(found: OrderingFacts, condition: str, on: bool) -> OrderingFacts:
    """Return ``found`` with one condition added. If ``on`` is True, the write makes ``condition``; otherwise the write
    ends it."""
    return found._replace(makes=found.makes | {condition}) if on else found._replace(ends=found.ends | {condition})


def cannot_without(path: str, kind: str, value: str) -> frozenset[str]:
    """Return the conditions that this write cannot be made without."""
    return frozenset(need for need in ordering_facts(path, kind, value).needs if need.startswith(_THERE))


def ordered(writes: Sequence[OrderingFacts], together: Sequence[str] = ()) -> list[int]:
    """Return the indices of ``writes`` in the order in which they have to be made.

    The given order is changed only if the facts require this. If the facts contradict each other, the given order is
    returned. ``together``: a name for each write; writes with the same name stay together where possible.
    """
    for softly in (True, False):
        found = _sorted(together or [""] * len(writes), _edges(writes, softly=softly))
        if found is not None:
            return found
    return list(range(len(writes)))


def _edges(known: Sequence[OrderingFacts], *, softly: bool) -> list[tuple[object, object]]:
    """Return pairs (earlier, later) that restrict the order of the writes ``known``.

    One item of each pair is the index of a write, the other is a condition or a group. ``softly``: True to include the
    pairs for *vacates*.
    """
    pairs: list[tuple[object, object]] = []
    for n, found in enumerate(known):
        for condition in found.needs:
            pairs += [(("made", condition), n), (n, ("ends", condition))]
        pairs += [(n, ("made", condition)) for condition in found.makes]
        pairs += [(("ends", condition), n) for condition in found.ends]
        pairs += [(n, ("displaced", group)) for group in found.displaces if group != found.group]
        if found.group:
            pairs.append((("displaced", found.group), n))
        if softly and found.vacates:
            pairs.append((n, ("made", VACANT)))
    return pairs


def _sorted(names: Sequence[str], pairs: Sequence[tuple[object, object]]) -> list[int] | None:
    """Return the indices of ``names`` in topological order (Kahn's method). Return None if the pairs form a cycle.

    If several indices could come next, the chosen one has the same name as the index before it. If none has this name,
    the lowest index is chosen.
    """
    import heapq

    later: dict[object, list[object]] = {}
    waits: dict[object, int] = dict.fromkeys(range(len(names)), 0)
    for one, other in pairs:
        later.setdefault(one, []).append(other)
        waits.setdefault(one, 0)
        waits[other] = waits.get(other, 0) + 1
    free: dict[str, list[int]] = {}
    for n, name in enumerate(names):
        if not waits[n]:
            free.setdefault(name, []).append(n)
    conditions = [node for node in waits if not isinstance(node, int) and not waits[node]]
    found: list[int] = []
    last = ""
    while conditions or free:
        # Conditions cost nothing: each is met as soon as possible, so that all writes behind them compete.
        if conditions:
            node = conditions.pop()
        else:
            last = last if last in free else min(free, key=lambda name: free[name][0])
            node = heapq.heappop(free[last])
            found.append(node)
            if not free[last]:
                del free[last]
        for other in later.get(node, ()):
            waits[other] -= 1
            if waits[other]:
                continue
            if isinstance(other, int):
                heapq.heappush(free.setdefault(names[other], []), other)
            else:
                conditions.append(other)
    return found if len(found) == len(names) else None
