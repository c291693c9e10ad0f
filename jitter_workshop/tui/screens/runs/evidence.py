"""Show where the time of a run went, as causes, worst stalls and other tasks.

For a run without a trace, show its counters, its longest stalls, and commands to run by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from jitter_workshop.model.evidence import CounterReport, EvidenceReport
from jitter_workshop.model.run import Run
from jitter_workshop.model.text import ID, clean
from jitter_workshop.presenter.runs import causes as views
from jitter_workshop.presenter.runs import counters
from jitter_workshop.presenter.text.lines import waiting
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.background import aside
from jitter_workshop.tui.screens.runs.causes import CausesPage, CausesScreen

_NEXT: dict[CausesPage, str] = {"causes": "stalls", "stalls": "who else ran", "others": "causes"}
_NEXT_COUNTED: dict[CausesPage, str] = {"causes": "stalls", "stalls": "by hand", "others": "counters"}


class EvidenceScreen(CausesScreen):
    """Show the causes of a run's stalls. Reading the trace of a noisy run takes seconds. So a thread reads the trace
    block by block, and the user can leave the screen meanwhile.
    """

    def __init__(self, run: Run, focus: Sequence[str] = ()) -> None:
        """Take the run to explain. ``focus``: the ``evidence`` words of a chapter, which decide the page that is shown
        first."""
        super().__init__()
        self.shown_run = run
        self._focus = focus
        self._report: EvidenceReport | CounterReport | None = None
        self.page = "others" if views.focused(focus) else "causes"
        self._went = (0, 0)

    def heading(self) -> str:
        return f"Who took the time · {clean(self.shown_run.label or self.shown_run.id, ID)}"

    @property
    def turns(self) -> dict[CausesPage, str]:
        return _NEXT_COUNTED if isinstance(self._report, CounterReport) else _NEXT

    @property
    def traced(self) -> bool:
        return isinstance(self._report, EvidenceReport)

    @property
    def worst(self) -> Sequence[object]:
        return self._report.worst if self._report is not None else ()

    async def explain(self) -> None:
        self._report = await aside(partial(self.workshop.context.runs.causes, self.shown_run, self._progress))
        if isinstance(self._report, CounterReport):
            self.page = "causes"

    def _progress(self, done: int, total: int) -> None:
        self.told(partial(self._goes_on, done, total))

    def _goes_on(self, done: int, total: int) -> None:
        self._went = (done, total)
        if self._report is None:
            self.sheet("#causes-head").renew()

    # -- layout ----------------------------------------------------------------------------------------------------

    def head_lines(self, width: int) -> Iterable[Text]:
        if self._report is None:
            done, total = self._went
            block = f"Explaining: block {min(done + 1, total)} of {total}. Esc stops it."
            told = waiting(block if total else "Reading the trace…", done, total, width)
            return [Text("Nothing is known about this run's stalls.", "dim")] if self.said else told
        if isinstance(self._report, CounterReport):
            return counters.counters_head(self._report, width)
        return views.causes_head(self._report, width)

    def causes_lines(self, width: int) -> Iterable[Text]:
        if isinstance(self._report, CounterReport):
            return counters.counter_lines(self._report, width)
        if self._report is None:
            return ()
        table = views.cause_table(self._report, width, guest=self.shown_run.in_guest)
        return [*table, Text(), *views.trace_foot(self._report, width)]

    def stalls_lines(self, width: int) -> Iterable[Text]:
        if self._report is None:
            return
        if isinstance(self._report, CounterReport):
            yield from counters.longest_stall_lines(self._report, self.cursor, width)
            return
        yield Text(views.WORST_STALLS, "bold dim")
        for index, stall in enumerate(self._report.worst):
            yield from views.stall_in_rows(index + 1, stall, index == self.cursor, width, self.row_height)

    def stall_lines(self, width: int) -> Iterable[Text]:
        if not isinstance(self._report, EvidenceReport) or not self._report.worst:
            return
        yield from views.stall_page(self._report.worst[self.cursor], width)

    def others_lines(self, width: int) -> Iterable[Text]:
        if isinstance(self._report, CounterReport):
            return counters.permitted_command_lines(self._report, width)
        return views.ran_there(self._report, self._focus, width) if self._report is not None else ()

    # -- keys ------------------------------------------------------------------------------------------------------

    def write_tracks(self) -> Path:
        from jitter_workshop.flow.reporting.perfetto import write_run

        assert self._report is not None
        return write_run(self.workshop.context.handle, self.shown_run, self._report)

    def commands(self) -> Iterable[str]:
        if isinstance(self._report, CounterReport):
            return [command for command, _ in counters.permitted_commands(self._report)]
        if self._report is not None and self._report.residence is not None:
            return views.recording_commands(self._report.residence.proof.cpus)
        return ()
