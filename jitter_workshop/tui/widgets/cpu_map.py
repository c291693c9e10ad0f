"""Show a map of the machine: CPUs by package and last-level cache, in as few rows as the width allows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.widget import Widget

from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Cpu, Topology
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.widgets.sheet import Sheet

SIGNS = {"producer": "P", "accumulator": "A", "journaller": "J"}


@dataclass(frozen=True, slots=True)
class MapCell:
    """Hold one cell of the map, from column ``start`` to column ``end`` - 1. ``cpu``: the CPU in this cell; None if the
    cell holds the name of a group."""

    start: int
    end: int
    cpu: int | None
    name: str = ""


def shared_cache_groups(topology: Topology) -> list[tuple[str, tuple[Cpu, ...]]]:
    """Return the groups of CPUs that share a package and a last-level cache, as (name, CPUs)."""
    packages, nodes = ({getattr(cpu, name) for cpu in topology.cpus} for name in ("package", "node"))
    found: dict[tuple[int, CpuSet], list[Cpu]] = {}
    names: dict[tuple[int, CpuSet], str] = {}
    for cpu in sorted(topology.cpus, key=lambda c: (c.package, c.id)):
        cache = topology.last_level_cache(cpu.id)
        key = (cpu.package, cache.cpus if cache else CpuSet())
        found.setdefault(key, []).append(cpu)
        level = f"L{cache.level}" if cache else "cache ?"
        of_package = f"package {cpu.package} {level}" if len(packages) > 1 else level
        names[key] = f"node {cpu.node} {level}" if len(nodes) > len(packages) else of_package
    return [(names[key], tuple(cpus)) for key, cpus in found.items()]


def lay_out(topology: Topology, width: int) -> list[list[MapCell]]:
    """Return the rows of the map, each as a list of cells. A group of CPUs that does not fit in one row continues in
    the next row.

    A row is drawn like ``L3 0· 1P 2·``. ``L3`` is the name of a group, and the numbers are CPUs. A letter is the thread
    on the CPU (``P``: the producer), and ``·`` means no thread.
    """
    digits = max((len(str(cpu.id)) for cpu in topology.cpus), default=1)
    cell_width = digits + 3
    rows: list[list[MapCell]] = [[]]
    column = 0
    for name, cpus in shared_cache_groups(topology):
        need = len(name) + 1 + cell_width * len(cpus)
        if column and column + need > width:
            rows.append([])
            column = 0
        rows[-1].append(MapCell(column, column + len(name), None, name))
        column += len(name) + 1
        indent = column
        # Rows of equal length: the second threads of cores then stand below the first ones.
        each = math.ceil(len(cpus) / max(math.ceil(len(cpus) / max((width - indent) // cell_width, 1)), 1))
        for number, cpu in enumerate(cpus):
            if number and number % each == 0:
                rows.append([])
                column = indent
            rows[-1].append(MapCell(column, column + cell_width, cpu.id))
            column += cell_width
        column += 2
    return rows


class CpuMap(Sheet):
    """Show the map, with a cursor and with the threads on their CPUs."""

    class Clicked(Message):
        """Report that a CPU was clicked. The cursor is already on that CPU."""

    def __init__(self, topology: Topology, *, id: str | None = None) -> None:
        super().__init__(self._map, id=id)
        self._topology = topology
        self._chosen: dict[str, int] = {}
        usable = topology.allowed.cpus
        self.cursor = usable[0] if usable else (topology.cpus[0].id if topology.cpus else 0)

    def show_chosen(self, chosen: Mapping[str, int]) -> None:
        """Show the chosen CPUs. ``chosen``: role → CPU."""
        self._chosen = dict(chosen)
        self.renew()

    def move(self, across: int, down: int) -> None:
        """Move the cursor by ``across`` CPUs to the right. If ``down`` is 1, move the cursor to the nearest CPU in the
        row below. If ``down`` is -1, move it to the nearest CPU in the row above.
        """
        rows = lay_out(self._topology, self.content_size.width)
        places = {
            cell.cpu: (row, cell.start) for row, cells in enumerate(rows) for cell in cells if cell.cpu is not None
        }
        if self.cursor not in places:
            return
        here, start = places[self.cursor]
        if across:
            cpus = list(places)
            self.cursor = cpus[(cpus.index(self.cursor) + across) % len(cpus)]
        elif reached := {cpu: abs(at - start) for cpu, (row, at) in places.items() if row == here + down}:
            self.cursor = min(reached, key=reached.__getitem__)
        self.renew()
        row, _ = places[self.cursor]
        if isinstance(self.parent, Widget):
            self.parent.scroll_to_region(Region(0, row, 1, 1), animate=False)

    def _map(self, width: int) -> Iterable[Text]:
        for row in lay_out(self._topology, width):
            line = Text()
            for cell in row:
                line.append(" " * (cell.start - line.cell_len)).append(*self._cell(cell))
            yield line

    def _cell(self, cell: MapCell) -> tuple[str, str]:
        if cell.cpu is None:
            return cell.name, "dim"
        cpu = self._topology.cpu(cell.cpu)
        role = next((r for r, c in self._chosen.items() if c == cell.cpu), None)
        sign = SIGNS[role] if role else "·"
        style = "text"
        if cpu is None or not cpu.online:
            sign, style = "–", "faint"
        elif not cpu.allowed:
            sign, style = "×", "dim"
        elif role:
            style = "bold accent"
        if cell.cpu == self.cursor:
            style += " reverse"
        return f"{cell.cpu:>{cell.end - cell.start - 2}}{sign} ", style

    def on_click(self, event: events.Click) -> None:
        position = event.get_content_offset(self)
        rows = lay_out(self._topology, self.content_size.width)
        if position is None or not 0 <= position.y < len(rows):
            return
        for cell in rows[position.y]:
            if cell.cpu is not None and cell.start <= position.x < cell.end:
                event.stop()
                self.cursor = cell.cpu
                self.renew()
                self.post_message(self.Clicked())


def cpu_facts(topology: Topology, number: int) -> Sequence[str]:
    """Return facts about one CPU; () if there is no such CPU."""
    cpu = topology.cpu(number)
    if cpu is None:
        return ()
    told = [f"CPU {number}", f"core {cpu.core}", f"package {cpu.package}", f"node {cpu.node}"]
    siblings = [str(s) for s in cpu.smt_siblings if s != number]
    if siblings:
        told.append(f"shares its core with {', '.join(siblings)}")
    if cpu.core_type:
        told.append(f"{cpu.core_type} core")
    cache = topology.last_level_cache(number)
    if cache is not None and cache.size_bytes:
        told.append(f"L{cache.level} {cache.size_bytes // 1024:,} KiB with CPUs {cache.cpus}")
    if not cpu.online:
        told.append("offline")
    elif not cpu.allowed:
        told.append("not allowed: affinity mask or cgroup")
    return told
