"""Draw a host's CPUs as boxes, in the order of their numbers.

A core with a measured thread has its own box. A hot core without a thread has its own box too. If there are many such
cores, they share one box. All housekeeping CPUs share one box. So a host with hundreds of CPUs needs little more room
than a small one. A box tells what a plan changes on its CPUs, but not what else runs there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from jitter_workshop.model.change import Change
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass, field
from jitter_workshop.model.text import many
from jitter_workshop.model.walk import CpuView
from jitter_workshop.presenter.text.cpu_effects import CpuEffect, effects_on_cpus, uncounted
from jitter_workshop.presenter.text.lines import Lines, in_ascii
from jitter_workshop.presenter.text.pages import kept_together
from jitter_workshop.presenter.text.styled import Text

MOST_IDLE_CORES = 2
"""Up to this number of hot cores without a thread have a box each; more of them share one box."""

_GAP = 1
_HOUSEKEEPING = ("housekeeping", "cool")


@dataclass(frozen=True, slots=True)
class _Box:
    title: str
    lines: tuple[Text, ...]

    @property
    def inner(self) -> int:
        return max(len(self.title) + 1, *(line.cell_len for line in self.lines))


@dataclass(frozen=True, slots=True)
class Changed:
    """Hold the changes of a plan that the boxes show. ``effects``: the effects of the plan on CPUs. ``writes``: CPU →
    number of writes to the CPU's files. Writes that ``effects`` already shows are not counted. ``made``: True if the
    writes have been made; then the boxes show the state after the writes.
    """

    effects: tuple[CpuEffect, ...] = ()
    writes: Counter[int] = field(default_factory=Counter)
    made: bool = False


def boxes(view: CpuView, width: int, *, ascii_only: bool = False) -> Lines:
    """Return the CPUs and the placed threads as boxes side by side, in rows of at most ``width`` cells; [] for a host
    that shows no CPU. ``ascii_only``: draw the borders in ASCII, for the plain walk."""
    return _drawn(view, width, Changed(), ascii_only)


def of_settings(
    view: CpuView,
    width: int,
    changes: Iterable[Change],
    *,
    made: bool = False,
    waits: bool = True,
    ascii_only: bool = False,
) -> Lines:
    """Return the boxes of :func:`boxes` with what a plan of settings changes on each CPU; [] if no change of the plan
    is about particular CPUs. ``made``: the writes are in effect, so the boxes show the state after them. ``waits``:
    True if boot parameters among the writes take effect only at the next boot.
    """
    planned = tuple(changes)
    changed = Changed(effects_on_cpus(planned, view.topology.online, waits=waits), uncounted(planned), made)
    return _drawn(view, width, changed, ascii_only) if changed.effects or changed.writes else []


def _drawn(view: CpuView, width: int, changed: Changed, ascii_only: bool) -> Lines:
    lines = _rows(_boxes(view, changed), width)
    return in_ascii(lines) if ascii_only else lines


def _rows(found: Iterable[_Box], width: int) -> Lines:
    """Return boxes side by side, in as many rows as they need."""
    rows: list[list[_Box]] = []
    left = 0
    for box in found:
        if left < box.inner + 4 or not rows:
            rows.append([])
            left = width
        rows[-1].append(box)
        left -= box.inner + 4 + _GAP
    return [line for row in rows for line in _row(row, width)]


def _row(row: Sequence[_Box], width: int) -> Lines:
    height = max(len(box.lines) for box in row)
    lines = [Text() for _ in range(height + 2)]
    for n, box in enumerate(row):
        inner = min(box.inner, width - 4)
        for line in lines if n else ():
            line.append(" " * _GAP)
        lines[0].append("┌ ", "dim").append(box.title[:inner], "text")
        lines[0].append(f" {'─' * (inner - len(box.title[:inner]))}┐", "dim")
        for number in range(height):
            told = box.lines[number].copy() if number < len(box.lines) else Text()
            told.truncate(inner, ellipsis=True, pad=True)
            lines[number + 1].append("│ ", "dim").append(told).append(" │", "dim")
        lines[-1].append(f"└{'─' * (inner + 2)}┘", "dim")
    return kept_together(lines)


def _boxes(view: CpuView, changed: Changed) -> list[_Box]:
    """Return the boxes in the order of their first CPUs. Each core with a measured thread gets a box, and so does each
    hot core. If there are many hot cores without a thread, these share one box. All other CPUs together get one box.
    """
    online = view.topology.online
    used = CpuSet.of(cpu for _, cpu in view.threads) & online
    cores = _cores(view, used | (view.hot & online))
    idle = [core for core in cores if not core & used]
    together = idle if len(idle) > MOST_IDLE_CORES else []
    found = [(core, _core(view, core, changed)) for core in cores if core not in together]
    if together:
        cpus = CpuSet.of(cpu for core in together for cpu in core)
        told = Text.assemble(("hot", "accent"), (_written(changed, cpus), "dim"), ("  no thread of ours", "dim"))
        found.append((cpus, _Box(cpus.named, (told, *_effects(changed, cpus)))))
    rest = online - CpuSet.of(cpu for core in cores for cpu in core)
    if rest:
        told = Text.assemble(_HOUSEKEEPING, (_written(changed, rest), "dim"))
        found.append((rest, _Box(rest.named, (told, *_effects(changed, rest)))))
    return [box for _, box in sorted(found, key=lambda one: one[0].cpus[0])]


def _cores(view: CpuView, cpus: CpuSet) -> list[CpuSet]:
    """Return the cores to which these CPUs belong. Each core is the set of its online CPUs. The cores are in the order
    of their first CPUs.
    """
    cores = [CpuSet((cpu,)) | view.topology.siblings_of(CpuSet((cpu,))) for cpu in cpus]
    return sorted(dict.fromkeys(cores), key=lambda core: core.cpus)


def _core(view: CpuView, core: CpuSet, changed: Changed) -> _Box:
    """Return the box of one core, with a line for each of its CPUs."""
    digits = max(len(str(cpu)) for cpu in core)
    lines = []
    for cpu in core:
        line = Text()
        if len(core) > 1:
            line.append(f"{cpu:>{digits}}  ", "text")
        placed = [name for name, at in view.threads if at == cpu]
        line.append(*_role(view, core, cpu))
        for name in placed:
            line.append("  ").append(name, "bold text")
        line.append(_written(changed, CpuSet((cpu,))), "dim")
        lines.append(line)
    return _Box(core.named + (", one core" if len(core) > 1 else ""), (*lines, *_effects(changed, core)))


def _written(changed: Changed, cpus: CpuSet) -> str:
    count = sum(changed.writes[cpu] for cpu in cpus)
    return f"  {many(count, 'write')}" if count else ""


def _effects(changed: Changed, cpus: CpuSet) -> Iterator[Text]:
    """Yield lines on what the plan changes on these CPUs, one line per effect. If an effect differs between the CPUs,
    each group of CPUs with the same effect has a line.
    """
    for effect in changed.effects:
        alike: dict[tuple[str, str], list[int]] = {}
        for cpu in cpus:
            if cpu in effect.values:
                alike.setdefault(effect.values[cpu], []).append(cpu)
        for (before, after), group in alike.items():
            where = f"{CpuSet.of(group).named}: " if len(group) < len(cpus) else ""
            line = Text.assemble((where, "text"), (f"{effect.name}  ", "dim"))
            if before == after:
                yield line.append(before, "text")
            elif changed.made:
                yield line.append(after, "good").append(f"  before: {before}", "dim")
            else:
                yield line.append(f"{before} → ", "text").append(after, "accent")


def _role(view: CpuView, core: CpuSet, cpu: int) -> tuple[str, str]:
    """Return the role of a core's CPU as text, and the text's style."""
    if cpu not in view.hot:
        return ("sibling", "dim") if core & view.hot else _HOUSEKEEPING
    busy = [one for one in core if any(at == one for _, at in view.threads)]
    return ("hot", "accent") if cpu in busy or not busy else ("idle sibling", "dim")


# -- the whole machine -------------------------------------------------------------------------------------------------


def topology(view: CpuView, width: int) -> Lines:
    """Return all online CPUs as boxes, in rows of at most ``width`` cells. Each last-level cache has a box with its
    cores. Many caches without a hot CPU share one box."""
    found: dict[tuple[int, CpuSet, str], list[CpuSet]] = {}
    for core in _cores(view, view.topology.online):
        cpu, cache = view.topology.cpu(core.cpus[0]), view.topology.last_level_cache(core.cpus[0])
        size = _size(cache.size_bytes) if cache is not None and cache.size_bytes else ""
        shared = (cache.cpus, f"L{cache.level}{size}") if cache is not None else (CpuSet(), "")
        found.setdefault((cpu.package if cpu is not None else 0, *shared), []).append(core)
    several = len({package for package, _, _ in found}) > 1
    made: list[_Box] = []
    other: list[CpuSet] = []
    quiet = [key for key, cores in found.items() if not any(core & view.hot for core in cores)]
    for key, cores in found.items():
        if key in quiet and len(quiet) > MOST_IDLE_CORES:
            other += cores
            continue
        package, _, cache_words = key
        title = ", ".join(filter(None, (f"package {package}" if several or not cache_words else "", cache_words)))
        made.append(_Box(title, tuple(_alike(view, cores, width - 4))))
    if other:
        cpus = CpuSet.of(cpu for core in other for cpu in core)
        told = Text.assemble(("housekeeping", "cool"), (f"  {many(len(other), 'core')}", "dim"))
        made.append(_Box(f"{len(quiet)} other caches", (Text(cpus.named, "text"), told)))
    return _rows(made, width)


def _size(count: int) -> str:
    mebi = count // (1 << 20)
    return f" {mebi:,} MiB" if mebi else f" {count // 1024:,} KiB"


def _alike(view: CpuView, cores: Sequence[CpuSet], width: int) -> Iterator[Text]:
    """Yield lines on cores and the roles of their CPUs. Neighbouring cores with the same roles share a line. If the
    CPUs of a core have different roles, such as hot and idle sibling, each role has a line. If the number of cores has
    no room in a line of ``width`` cells, it stands in the next line."""
    for _, group in groupby(cores, key=lambda core: tuple(_role(view, core, cpu) for cpu in core)):
        together = list(group)
        of_role: dict[tuple[str, str], list[int]] = {}
        for core in together:
            for cpu in core:
                of_role.setdefault(_role(view, core, cpu), []).append(cpu)
        for number, ((word, style), cpus) in enumerate(of_role.items()):
            line = Text.assemble((f"{CpuSet.of(cpus).named}  ", "text"), (word, style))
            if not number and (len(together) > 1 or len(together[0]) > 1):
                counted = Text(f"  {'one core' if len(together) == 1 else many(len(together), 'core')}", "dim")
                if line.cell_len + counted.cell_len > width:
                    yield from (line, counted)
                    continue
                line.append(counted)
            yield line
