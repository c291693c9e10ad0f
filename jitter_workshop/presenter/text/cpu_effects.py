"""Find the effects of a plan's writes on each CPU. An example is the number of movable interrupts that may use the
CPU."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from jitter_workshop.host.irq.irq_affinity import DEFAULT_AFFINITY
from jitter_workshop.model.change import Change
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import clean
from jitter_workshop.tuning.setting_types.cgroup import parse_cpuset_text
from jitter_workshop.tuning.tunables.isolation import GROUP

_OF_CPU = re.compile(r"/(?:cpu|policy)(\d{1,6})/", re.ASCII)
_OF_BOOT = re.compile(r"\b(nohz_full|rcu_nocbs|isolcpus|irqaffinity)=(\S+)", re.ASCII)
_IRQ = "/proc/irq/"
_WORKQUEUES = "/sys/devices/virtual/workqueue/"
_AT_NEXT_BOOT = ", from the next boot"
_VALUE = 24
"""The most characters of a setting's value that the box of a CPU shows."""

_FILES = {
    "scaling_governor": "governor",
    "energy_performance_preference": "EPP",
    "pm_qos_resume_latency_us": "latency limit",
    "scaling_min_freq": "lowest frequency",
    "scaling_max_freq": "highest frequency",
}
"""A file of a single CPU → the word for the file's value. The value is shown unchanged."""

Values = Mapping[int, tuple[str, str]]
"""For each CPU: its state before the writes, and its state after them."""


@dataclass(frozen=True, slots=True)
class CpuEffect:
    """Hold one effect of writes on CPUs. ``name``: what the writes change, such as ``governor``. ``values``: the state
    of each CPU before and after the writes; CPUs without such a state are missing."""

    name: str
    values: Values


def effects_on_cpus(changes: Iterable[Change], online: CpuSet, *, waits: bool = True) -> tuple[CpuEffect, ...]:
    """Return the effects of writes that change the state of single online CPUs. Other writes, such as those below
    ``/proc/sys/vm``, have no effect here. ``waits``: True if boot parameters among the writes wait for the next
    boot."""
    found = list(changes)
    later = _of_boot(found, online, _AT_NEXT_BOOT if waits else "")
    each = (*_of_masks(found, online), *_isolated(found, online), *_of_files(found), *later)
    shown = (CpuEffect(one.name, {c: v for c, v in one.values.items() if c in online}) for one in each)
    return tuple(one for one in shown if any(before != after for before, after in one.values.values()))


def uncounted(changes: Iterable[Change]) -> Counter[int]:
    """Return CPU → number of writes to the CPU's files, without those that :func:`effects_on_cpus` shows."""
    return Counter(
        int(found[1])
        for change in changes
        if (found := _OF_CPU.search(change.path)) and not _is_idle_state(change) and _file(change) not in _FILES
    )


def _of_masks(changes: Sequence[Change], online: CpuSet) -> Iterator[CpuEffect]:
    """Yield the effects of masks on each CPU. An effect is, for example, how many movable interrupts may use the CPU.
    There are masks of four kinds: of movable interrupts, unbound workqueues, new interrupts and movable tasks."""
    queues = [c for c in changes if c.path.startswith(_WORKQUEUES)]
    if queues:
        yield _counted("unbound work", queues, CpuSet.parse_mask, online, lambda n: _may("run", n, len(queues)))
    interrupts = [c for c in changes if c.path.startswith(_IRQ) and c.kind == "cpu-list"]
    if interrupts:
        yield _counted("movable interrupts", interrupts, CpuSet.parse_list, online, str)
    future = [c for c in changes if c.path == DEFAULT_AFFINITY]
    if future:
        yield _counted("new interrupts", future, CpuSet.parse_mask, online, lambda n: _may("come", n, 1))
    tasks = [c for c in changes if c.kind == "affinity"]
    if tasks:
        yield _counted("movable tasks", tasks, CpuSet.parse_list, online, str)


def _may(do: str, count: int, of: int) -> str:
    if not count:
        return "kept off"
    return f"may {do}" if count == of else f"may {do}, {count} of {of}"


def _counted(
    name: str,
    changes: Sequence[Change],
    parse: Callable[[str], CpuSet],
    online: CpuSet,
    told: Callable[[int], str],
) -> CpuEffect:
    before, after = (_allowed((getattr(c, when) for c in changes), parse) for when in ("before", "after"))
    return CpuEffect(name, {cpu: (told(before[cpu]), told(after[cpu])) for cpu in online})


def _allowed(values: Iterable[str], parse: Callable[[str], CpuSet]) -> Counter[int]:
    """Return for each CPU the number of masks that contain it. ``values``: the masks as text; unreadable ones are
    ignored."""
    count: Counter[int] = Counter()
    for value, times in Counter(values).items():
        try:
            cpus = parse(value)
        except ValueError:
            continue
        count.update(dict.fromkeys(cpus, times))
    return count


def _isolated(changes: Sequence[Change], online: CpuSet) -> Iterator[CpuEffect]:
    """Yield the effect of our partition or cpuset: which CPUs run only the tasks that are placed on them."""
    cpus = CpuSet.of(cpu for change in changes for cpu in _cut_off(change))
    if cpus:
        free = "any"
        values = {cpu: (free, "only tasks placed here" if cpu in cpus else free) for cpu in online}
        yield CpuEffect("tasks", values)


def _cut_off(change: Change) -> CpuSet:
    """Return the CPUs that a write gives to this tool's own group of isolated CPUs."""
    try:
        if change.kind == "cgroup-cpus":
            return CpuSet.parse_list(change.after)
        if change.kind == "cpuset" and change.path.endswith(f"/{GROUP}-hot"):
            parts = parse_cpuset_text(change.after)
            return parts[0] if parts is not None else CpuSet()
    except ValueError:
        pass
    return CpuSet()


def _of_files(changes: Sequence[Change]) -> Iterator[CpuEffect]:
    """Yield the effects of writes to the CPUs' own files."""
    of_file: dict[str, dict[int, tuple[str, str]]] = {}
    states: dict[int, list[Change]] = {}
    for change in changes:
        cpu = _OF_CPU.search(change.path)
        if cpu is None:
            continue
        if _is_idle_state(change):
            states.setdefault(int(cpu[1]), []).append(change)
        elif (name := _FILES.get(_file(change))) is not None:
            before, after = clean(change.before, _VALUE), clean(change.after, _VALUE)
            first = of_file.setdefault(name, {}).get(int(cpu[1]), (before, after))
            of_file[name][int(cpu[1])] = (first[0], after)
    for name, values in of_file.items():
        yield CpuEffect(name, values)
    if states:
        yield CpuEffect(
            "deep idle states",
            {
                cpu: (_in_use(c.before for c in of_cpu), _in_use(c.after for c in of_cpu))
                for cpu, of_cpu in states.items()
            },
        )


def _in_use(disabled: Iterable[str]) -> str:
    count = sum(1 for value in disabled if value.strip() == "0")
    return f"{count} in use" if count else "none in use"


def _of_boot(changes: Sequence[Change], online: CpuSet, when: str) -> Iterator[CpuEffect]:
    """Yield an effect for each boot parameter with a list of CPUs. The effect tells for each CPU whether it is in the
    list. ``when``: the words after a new value, such as ", from the next boot"."""
    for change in changes:
        if change.when != "boot":
            continue
        before = dict(_OF_BOOT.findall(change.before))
        for name, value in _OF_BOOT.findall(change.after):
            was, named = _listed(before.get(name, "")), _listed(value)
            values = {}
            for cpu in online:
                old, new = (("no", "yes")[cpu in cpus] for cpus in (was, named))
                values[cpu] = (old, new if new == old else f"{new}{when}")
            yield CpuEffect(name, values)


def _listed(value: str) -> CpuSet:
    """Return the CPUs of a boot parameter, which may begin with flags (``isolcpus=domain,1-3``)."""
    return CpuSet.if_list(",".join(part for part in value.split(",") if part[:1].isdigit())) or CpuSet()


def _is_idle_state(change: Change) -> bool:
    return "/cpuidle/" in change.path and change.path.endswith("/disable")


def _file(change: Change) -> str:
    return change.path.rpartition("/")[2]
