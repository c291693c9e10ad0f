"""Show the page for choosing CPUs: a map of the machine with a cursor, and a line to type into."""

from __future__ import annotations

from collections.abc import Iterable

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input

from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.model.host import Topology
from jitter_workshop.model.text import SENTENCE, clean
from jitter_workshop.presenter.course.typed import ROLES, parse_cpus
from jitter_workshop.presenter.text.lines import keyed, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.screens.common.base import Page
from jitter_workshop.tui.widgets.cpu_map import SIGNS, CpuMap, cpu_facts
from jitter_workshop.tui.widgets.sheet import Pane, Sheet

_KEYS = (
    "p a j put a thread on the cursor's CPU · / types a list · x lets this tool choose · Enter accepts · Esc cancels"
)

MANY = 64
"""A number of CPUs. The map of a machine with more CPUs takes the whole screen."""


class CpuPicker(Page, scope="cpus"):
    """Let the learner choose the CPUs of the measured threads. If the choice is not possible, the page tells the
    reason."""

    def __init__(self, walk: ChapterWalk, topology: Topology) -> None:
        super().__init__()
        self._walk = walk
        self._topology = topology
        self.chosen: dict[str, int] = self._now()
        self._said = ""
        # The map of so many CPUs scrolls, so that what is said of the one under the cursor stays in sight.
        self.set_class(len(topology.cpus) > MANY, "-many")

    def _now(self) -> dict[str, int]:
        try:
            request = self._walk.measuring.request("again")
        except WorkshopError:
            return {}
        cpus = zip(ROLES, (request.producer_cpu, request.accumulator_cpu, request.journaller_cpu), strict=True)
        return {role: cpu for role, cpu in cpus if cpu is not None}

    def compose(self) -> ComposeResult:
        with Vertical(classes="around"), Vertical(classes="frame"):
            yield Sheet(self._head, id="cpus-head")
            with Pane(id="cpus-map"):
                yield CpuMap(self._topology, id="map")
            yield Sheet(self._foot, id="cpus-foot")
            # The cursor does not blink: blinking needs a timer.
            yield Input(placeholder="2,4   or   producer=2 accumulator=4", id="typed", compact=True)

    def on_mount(self) -> None:
        self.query_one(Input).cursor_blink = False
        self.redraw()

    def redraw(self) -> None:
        self.query_one(CpuMap).show_chosen(self.chosen)
        super().redraw()

    def _head(self, width: int) -> Iterable[Text]:
        yield Text("CHOOSE CPUs", "bold text")
        yield Text()

    def _foot(self, width: int) -> Iterable[Text]:
        yield Text()
        line = Text()
        for role in ROLES:
            cpu = self.chosen.get(role)
            line.append(" · " if line else "", "dim").append(f"{SIGNS[role]} ", "bold accent")
            line.append(f"{role}: {'auto' if cpu is None else f'CPU {cpu}'}", "text")
        yield from wrap(line, width)
        told = " · ".join(cpu_facts(self._topology, self.query_one(CpuMap).cursor))
        yield from wrap(Text(told, "dim"), width)
        yield Text("× not allowed   – offline", "dim")
        if self._said:
            yield from wrap(Text(clean(self._said, SENTENCE), "bold bad"), width, "! ")
        yield Text()
        yield from wrap(keyed(_KEYS), width)

    # -- keys ------------------------------------------------------------------------------------------------------

    def action_put(self, role: str) -> None:
        """Put a thread on the CPU under the cursor."""
        cpu = self.query_one(CpuMap).cursor
        self._choose({r: c for r, c in self.chosen.items() if c != cpu and r != role} | {role: cpu})

    def _choose(self, chosen: dict[str, int]) -> None:
        self.chosen, self._said = chosen, ""
        self.redraw()

    @on(CpuMap.Clicked)
    def _clicked(self) -> None:
        """Remove the thread from the clicked CPU. If no thread is on this CPU, put the next thread without a CPU
        there.
        """
        cpu = self.query_one(CpuMap).cursor
        sits = next((role for role, c in self.chosen.items() if c == cpu), None)
        free = next((role for role in ROLES if role not in self.chosen), None)
        if sits is not None:
            self._choose({role: c for role, c in self.chosen.items() if role != sits})
        elif free is not None:
            self.action_put(free)

    def action_auto(self) -> None:
        self._choose({})

    def action_type(self) -> None:
        typed = self.query_one(Input)
        typed.add_class("-on")
        typed.value = ",".join(str(self.chosen[r]) for r in ROLES if r in self.chosen)
        typed.focus()

    @on(Input.Submitted)
    def _typed(self, message: Input.Submitted) -> None:
        message.stop()
        try:
            self._choose(parse_cpus(message.value))
        except WorkshopError as error:
            self._said = error.sentence()
            self.redraw()
        else:
            self._stop_typing()

    def _stop_typing(self) -> None:
        self.query_one(Input).remove_class("-on")
        self.set_focus(None)

    def action_accept(self) -> None:
        try:
            self._walk.cpus.choose(*(self.chosen.get(role) for role in ROLES))
        except WorkshopError as error:
            self._said = error.sentence()
            self.redraw()
        else:
            self.dismiss(None)

    def action_close(self) -> None:
        if self.query_one(Input).has_class("-on"):
            self._stop_typing()
        else:
            super().action_close()

    def action_vertical(self, by: int) -> None:
        self._moved(0, by)

    def action_sideways(self, by: int) -> None:
        self._moved(by, 0)

    def _moved(self, across: int, down: int) -> None:
        self.query_one(CpuMap).move(across, down)
        self.redraw()
