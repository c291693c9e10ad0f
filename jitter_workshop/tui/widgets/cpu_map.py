"""Show the machine as a map: CPUs by package and last-level cache, in as few rows as the width allows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text
from textual import events
from textual.message import Message

from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.topology import Cpu, Topology
from jitter_workshop.tui.widgets.sheet import Sheet

SIGNS = {"producer": "P", "accumulator": "A", "journaller": "J"}


@dataclass(frozen=True, slots=True)
class Cell:
    """Hold one CPU on the map: its row, and its columns [start, end)."""

    cpu: int
    row: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Hold the map at a width: cells, and the labels of packages and caches as (row, column, text)."""

    cells: tuple[Cell, ...]
    labels: tuple[tuple[int, int, str], ...]
    rows: int


def groups(topology: Topology) -> list[tuple[str, tuple[Cpu, ...]]]:
    """Return CPUs that share a package and a last-level cache, with the group's name, in the order of their first
    CPU."""
    packages = {cpu.package for cpu in topology.cpus}
    found: dict[tuple[int, CpuSet], list[Cpu]] = {}
    names: dict[tuple[int, CpuSet], str] = {}
    for cpu in sorted(topology.cpus, key=lambda c: (c.package, c.id)):
        cache = topology.last_level_cache(cpu.id)
        key = (cpu.package, cache.cpus if cache else CpuSet())
        found.setdefault(key, []).append(cpu)
        level = f"L{cache.level}" if cache else "cache ?"
        names[key] = f"package {cpu.package} {level}" if len(packages) > 1 else level
    return [(names[key], tuple(cpus)) for key, cpus in found.items()]


def lay_out(topology: Topology, width: int) -> Layout:
    """Lay out groups like words: ``L3  0· 1P 2·``. A group that does not fit goes on in the next row."""
    digits = max((len(str(cpu.id)) for cpu in topology.cpus), default=1)
    cell_width = digits + 3
    cells: list[Cell] = []
    labels: list[tuple[int, int, str]] = []
    row = column = 0
    for name, cpus in groups(topology):
        need = len(name) + 1 + cell_width * len(cpus)
        if column and column + need > width:
            row, column = row + 1, 0
        labels.append((row, column, name))
        column += len(name) + 1
        for cpu in cpus:
            if column + cell_width > width and column:
                row, column = row + 1, 2
            cells.append(Cell(cpu.id, row, column, column + cell_width))
            column += cell_width
        column += 2
    return Layout(tuple(cells), tuple(labels), row + 1)


class CpuMap(Sheet):
    """Show the map with a cursor and the threads on their CPUs."""

    class Clicked(Message):
        """Report that a CPU was clicked."""

        def __init__(self, cpu: int) -> None:
            super().__init__()
            self.cpu = cpu

    def __init__(self, topology: Topology, *, id: str | None = None) -> None:
        super().__init__(self._map, id=id)
        self._topology = topology
        self._chosen: dict[str, int] = {}
        usable = topology.allowed.cpus
        self.cursor = usable[0] if usable else (topology.cpus[0].id if topology.cpus else 0)

    def show_chosen(self, chosen: Mapping[str, int]) -> None:
        """Show the chosen CPUs; ``chosen``: role → CPU."""
        self._chosen = dict(chosen)
        self.renew()

    def move(self, across: int, down: int) -> None:
        """Move the cursor to the next CPU in a row, or to the nearest one in the row above or below."""
        cells = lay_out(self._topology, self.content_size.width).cells
        at = next((i for i, cell in enumerate(cells) if cell.cpu == self.cursor), None)
        if at is None:
            return
        if across:
            self.cursor = cells[(at + across) % len(cells)].cpu
        elif down:
            row = [cell for cell in cells if cell.row == cells[at].row + down]
            if row:
                self.cursor = min(row, key=lambda cell: abs(cell.start - cells[at].start)).cpu
        self.renew()

    def _map(self, width: int) -> Iterable[Text]:
        layout = lay_out(self._topology, width)
        return [self._row(layout, row) for row in range(layout.rows)]

    def _row(self, layout: Layout, row: int) -> Text:
        pieces: list[tuple[int, str, str]] = [(at, text, "dim") for r, at, text in layout.labels if r == row]
        pieces += [(c.start, *self._cell(c)) for c in layout.cells if c.row == row]
        line = Text()
        for start, text, style in sorted(pieces):
            line.append(" " * (start - line.cell_len))
            line.append(text, style)
        return line

    def _cell(self, cell: Cell) -> tuple[str, str]:
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
        if position is None:
            return
        for cell in lay_out(self._topology, self.content_size.width).cells:
            if cell.row == position.y and cell.start <= position.x < cell.end:
                event.stop()
                self.cursor = cell.cpu
                self.renew()
                self.post_message(self.Clicked(cell.cpu))


def about(topology: Topology, number: int) -> Sequence[str]:
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
        told.append("not ours: affinity mask or cgroup")
    return told
