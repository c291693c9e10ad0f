"""Show all curves: the session's runs in a list, from which the learner chooses the curves to draw together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.geometry import Region

from jitter_workshop.chart.marks import in_lists
from jitter_workshop.chart.style import looks, theme_named
from jitter_workshop.errors import SessionError
from jitter_workshop.flow.measuring.curves import ROLES_OF_SLOTS, published_curves, told_apart_by_clock, with_role
from jitter_workshop.model.curve import CurveRole
from jitter_workshop.model.host import mark_notes
from jitter_workshop.model.run import HANDOFF, INTENDED, Run, apart_from_proofs, of_one_kind, of_transit
from jitter_workshop.model.spec import PACED
from jitter_workshop.model.text import LABEL, NAME, SHORT, WORD, clean, many
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.presenter.course.summary import HOW
from jitter_workshop.presenter.runs import curves
from jitter_workshop.presenter.runs.causes import NO_TRACE
from jitter_workshop.presenter.runs.curves import percentile_table
from jitter_workshop.presenter.runs.disturbances import disturbance_clause
from jitter_workshop.presenter.text.lines import labelled, local_time, small_title, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.stats.effect import judged_by, tail_of
from jitter_workshop.stats.figures import FIGURES, TRANSIT, KnownRun
from jitter_workshop.stats.sample_size import FEW_STALLS, FEW_TOLD, marks_of_run
from jitter_workshop.stats.scale import nice_ns, nice_number
from jitter_workshop.tui.background import aside
from jitter_workshop.tui.screens.common.base import WorkshopScreen
from jitter_workshop.tui.screens.runs.evidence import EvidenceScreen
from jitter_workshop.tui.widgets.chart import ChartView
from jitter_workshop.tui.widgets.heat import HeatView
from jitter_workshop.tui.widgets.keybar import Shown
from jitter_workshop.tui.widgets.sheet import ListSheet, Pane, Sheet, panel

_COLUMN = 8
_LEAST_NAME = 10
"""The least width of the column with the names of runs, if a name has no line of its own."""
_LEAST_LABEL = 5
"""The least number of characters of a run's label in the list, behind its chapter: it tells a chapter's runs apart."""
_LEAST_CHAPTER = 5
"""The least number of characters of a chapter's name in the list: a shorter beginning names no chapter."""
_BOLD_MEANS = "bold: judged by"
"""The meaning of the figure in bold: the figure by which the run is judged, a percentile or the rate of its stalls."""
_DISTURBED = "disturbed"
"""The mark of a run on whose CPUs other tasks ran."""
_STALLS = "stalls/s"
"""The head of the column with the rate of stalls of the runs that it judges."""
_JUDGED = "JUDGED BY"
"""The head of the column with the figure that judges a run, where the columns of all such figures have no room."""
_JUDGED_WIDTH = len("~99.9 ms p99.9999")
MOST_DRAWN = 6
"""The largest number of curves in the chart. More curves could not be told apart."""


NO_RUN = f"No run yet: {HOW}"
NO_CURVE = "No curve is chosen. Space draws the run under the cursor."


class RunsScreen(WorkshopScreen, scope="runs"):
    """Show chart and table of the session's runs, newest first. A click on a row shows or hides its curve."""

    def __init__(self) -> None:
        super().__init__()
        self._runs: tuple[Run, ...] = ()
        self._of_proofs = 0
        """The number of runs of proofs; they are not listed."""
        self._shown: set[str] = set()
        self._cursor = 0
        self._row_height = 1
        """The number of lines that a run has in the list."""
        self._imports: tuple[RunCurve, ...] = ()
        self._with_imports = True
        self._table = False
        self._heat = False
        """True while the heat map of the run under the cursor is shown in the place of the chart."""
        self._chapters: dict[str, str] = {}
        """Run id → the chapter whose run it is."""
        self._titles: dict[str, str] = {}
        """Run id → the title of this chapter, as home has it."""
        self._roles: dict[str, CurveRole] = {}
        """Run id → the role of the run's curve in its chapter."""
        self._judged: dict[str, str] = {}
        """Run id → the percentile that its charts mark. It is bold, unless the run is in ``_stalls``."""
        self._stalls: dict[str, str] = {}
        """Run id → the rate of stalls that judges the run, as text. A run that a percentile judges is missing."""
        self._few: dict[str, set[str]] = {}
        """Run id → the percentiles beyond which fewer than ten stalls lie."""
        self._of_transit: set[str] = set()
        """The ids of the ring's runs that have only transit, if others count from when a message was due."""

    def body(self) -> ComposeResult:
        with Vertical(id="runs-main"):
            with panel(Vertical(id="runs-chart"), "Curves"):
                yield ChartView(id="chart-of-runs")
                yield HeatView(id="heat-of-run")
                with Pane(id="runs-data"):
                    yield Sheet(self._numbers, id="runs-table")
            with panel(Pane(id="runs-list"), "Runs"):
                yield ListSheet(self._list, id="runs-sheet")
                yield Sheet(self._detail, id="run-detail")
        yield Sheet(self.say_lines, id="say")

    def heading(self) -> str:
        return "All curves of this session"

    def on_mount(self) -> None:
        every = self.workshop.context.runs.every()
        self._runs = tuple(reversed(apart_from_proofs(every)))
        self._of_proofs = len(every) - len(self._runs)
        self._chapters = {
            run_id: chapter.id for chapter in self.workshop.course.chapters for run_id in self._ids_of(chapter.id)
        }
        titles = {chapter.id: chapter.title for chapter in self.workshop.course.chapters}
        self._titles = {run_id: clean(titles[chapter], NAME) for run_id, chapter in self._chapters.items()}
        self._roles = {
            run_id: ROLES_OF_SLOTS[slot]
            for chapter in self.workshop.course.chapters
            for slot, run_id in self.workshop.context.progress(chapter.id).runs.items()
            if slot in ROLES_OF_SLOTS
        }
        asked = {one.id: one.judged_percentile for one in self.workshop.course.chapters}
        self._judged = {run.id: tail_of(run.workload, asked.get(self._chapters.get(run.id, ""))) for run in self._runs}
        judges = {
            run.id: FIGURES[judged_by(run.workload, asked.get(self._chapters.get(run.id, "")))] for run in self._runs
        }
        rates = {run.id: judges[run.id].of(KnownRun(run)) for run in self._runs if judges[run.id].unit == "a second"}
        self._few = {
            run.id: {percentile for percentile, mark in marks_of_run(run).items() if mark == FEW_STALLS}
            for run in self._runs
        }
        self._stalls = {ident: nice_number(rate) for ident, rate in rates.items() if rate is not None}
        rings = [run for run in self._runs if run.workload == "ring"]
        only = {run.id for run in rings if INTENDED not in run.histograms}
        self._of_transit = only if len(only) < len(rings) else set()
        self._shown = self._of_newest_chapter()
        self._imports = self.workshop.context.runs.imported()[-MOST_DRAWN:]
        self.redraw()

    def keys(self) -> Sequence[Shown]:
        traced = self._under is not None and self.workshop.context.runs.traced(self._under)
        others: Shown = ("runs.imported", "hide imported" if self._with_imports else "show imported")
        published: Shown = ("runs.published", "hide 2015" if self.shows_published else "show 2015")
        return (
            ("runs.toggle", ""),
            *([] if self._newest() <= self._shown else [("runs.all", "all")]),
            ("runs.heat", "curves" if self._heat else ""),
            ("runs.table", "chart" if self._table else "table"),
            # The footer holds seven keys; the help page has all of them.
            ("runs.causes", "") if traced else others if self._imports else published,
            ("app.glossary", ""),
            ("app.help", ""),
            ("runs.close", ""),
        )

    @property
    def _under(self) -> Run | None:
        """Return the run under the cursor."""
        return self._runs[self._cursor] if self._runs else None

    @property
    def _drawn(self) -> list[Run]:
        """Return the chosen runs, oldest first. All of them have the same workload, because different workloads
        measure different things.
        """
        return [run for run in reversed(self._runs) if run.id in self._shown]

    def _ids_of(self, chapter: str) -> list[str]:
        """Return the ids of a chapter's runs, those with the other choice of noise included: runs of one chapter are
        judged alike."""
        progress = self.workshop.context.progress(chapter)
        return [*progress.other_runs.values(), *progress.runs.values()]

    def _newest(self) -> set[str]:
        """Return the ids of the newest runs that have the chosen run's workload."""
        alike = [run.id for run in self._runs if self._under is not None and run.workload == self._under.workload]
        return set(alike[:MOST_DRAWN])

    def _of_newest_chapter(self) -> set[str]:
        """Return the ids of the newest runs that have the workload and the chapter of the newest run; those of all
        newest runs if it is of no chapter. The curves of several chapters could not be told apart at once."""
        newest = self._newest()
        chapter = self._chapters.get(self._runs[0].id) if self._runs else None
        return newest if chapter is None else {ident for ident in newest if self._chapters.get(ident) == chapter}

    def curves(self) -> list[RunCurve]:
        """Return the curves to draw: published curves, imported curves, and the chosen runs, oldest first.

        Published curves measure messages, so they are drawn only with runs of ``ring``.
        """
        chosen = self._drawn
        imported = self._imports if self._with_imports else ()
        own = self.workshop.context.runs.curves(chosen)
        published = published_curves() if self.shows_published and of_one_kind(chosen, "ring") else ()
        shown = (*published, *imported, *(with_role(one, self._roles.get(one.key)) for one in own))
        return list(told_apart_by_clock(shown)) if published else list(shown)

    def _highlight(self, curves: Sequence[RunCurve]) -> int | None:
        """Return the index of the curve of the run under the cursor; None if this curve is not drawn."""
        under = self._under
        return next((i for i, c in enumerate(curves) if under and c.run and c.run.id == under.id), None)

    def redraw(self) -> None:
        curves = self.curves()
        under = self._under
        chart = self.query_one("#chart-of-runs", ChartView)
        judged = [self._judged[run.id] for run in self._drawn]
        chart.show_curves(
            curves,
            highlight=self._highlight(curves),
            # The list has the name and the figures of each run; the legend has the other curves.
            listed=len(self._drawn),
            empty=NO_CURVE if self._runs else NO_RUN,
            asked=float(max(judged, key=float, default="99.9")),
        )
        chart.display = not self._table and not self._heat
        self.query_one("#runs-data", Pane).display = self._table and not self._heat
        shown = self.query_one("#heat-of-run", HeatView)
        shown.display = self._heat
        self.query_one("#runs-chart").border_title = "Heat map" if self._heat else "Curves"
        keys = [_BOLD_MEANS] if self._runs and self.wide else []
        self.query_one("#runs-list").border_title = " · ".join(("Runs", *keys))
        if self._heat and under is not None and shown.name_of_run != under.id:
            shown.show(None, "Reading the run's blocks…", under.id)
            self.run_worker(self._read_heat(under), exclusive=True, group="heat")
        super().redraw()

    async def _read_heat(self, run: Run) -> None:
        """Show the heat map of a run, or the reason why it has none."""
        view = self.query_one("#heat-of-run", HeatView)
        try:
            view.show(await aside(partial(self.workshop.context.runs.heat, run)), "", run.id)
        except SessionError as error:
            view.show(None, f"{error.sentence()}.", run.id)

    def _numbers(self, width: int) -> Iterable[Text]:
        return percentile_table(self.curves(), width)

    def _list(self, width: int) -> Iterable[Text]:
        if not self._runs:
            yield Text(NO_RUN, "dim")
            return
        # The charts of one workload mark one percentile; each further percentile has a column of its own. A run that is
        # judged by its stalls has their rate in place of it.
        tails = sorted({tail for run, tail in self._judged.items() if run not in self._stalls} - {"50"}, key=float)
        columns = [*((f"p{tail}", tail) for tail in tails), *([(_STALLS, "")] if self._stalls else [])]
        # On a small screen the median and all figures but the one that judges a run give their room to the names.
        columns, medians = (columns, True) if self.wide else ([(_JUDGED, "")], False)
        rest = width - 24 - sum(_wide(head) + 1 for head, _ in columns) - ((_COLUMN + 1) if medians else 0)
        name_width = max(rest, len("RUN") if self.huge else _LEAST_NAME)
        longest = max(len(self._named(run)) for run in self._runs)
        # A list beside the chart is narrow and high: a name that does not fit has a line of its own.
        self._row_height = 2 if self.huge and longest > name_width else 1
        drawn = self.curves()
        # The same colours as in the chart, where the curves that are not under the cursor are quieter.
        highlight = self._highlight(drawn)
        signs = looks([shown.curve for shown in drawn], theme_named(self.frame.palette.name), highlight)
        known = {shown.key: look for shown, look in zip(drawn, signs, strict=True)}
        heads = "".join(f" {head:>{_wide(head)}}" for head in [*(["p50"] if medians else []), *(h for h, _ in columns)])
        yield Text(f"    {'RUN':<{name_width}}{heads} {'max':>{_COLUMN}}  AT", "dim")
        few = False
        for number, run in enumerate(self._runs):
            summary = run.latency
            p50 = summary.percentiles.get("50") if summary else None
            under = number == self._cursor
            line = Text()
            line.append("▸" if under else " ", "accent")
            look = known.get(run.id)
            sign, colour = ("·", "dim") if look is None else (in_lists(look.glyph), str(look.point))
            line.append(f"{sign} ", colour)
            room = max(width - 4, 10) if self._row_height > 1 else name_width
            style = "bold text" if under else "text"
            line.append(f" {self._named(run, room):<{room}}", style)
            if self._row_height > 1:
                if under:
                    line.append(" " * max(width - line.cell_len, 0)).stylize("under")
                yield line
                line = Text(" " * (name_width + 4))
            worst = summary.max if summary else None
            stalls, judged = self._stalls.get(run.id), self._judged[run.id]
            if medians:
                line.append(f" {nice_ns(p50):>{_COLUMN}}", "bold text" if judged == "50" else "text")
            for head, tail in columns:
                shown = judged if head == _JUDGED else tail
                value = self._figure(run, shown) if shown else stalls or ""
                few = few or value.startswith(FEW_STALLS)
                if head == _JUDGED:
                    value = f"{value} p{judged}" if stalls is None else f"{stalls} {_STALLS}"
                loud = head != _JUDGED and (tail == judged if stalls is None else not tail)
                line.append(f" {value:>{_wide(head)}}", "bold text" if loud else "dim")
            line.append(f" {nice_ns(worst):>{_COLUMN}}", "text")
            at = local_time(run.started_at)
            line.append(f"  {at:%H:%M}" if at is not None else "  –", "dim")
            if under:
                line.append(" " * max(width - line.cell_len, 0)).stylize("under")
            yield line
        if few:
            yield Text(f"    {FEW_TOLD}", "dim")
        if any(run.disturbed for run in self._runs):
            yield Text(f"    {_DISTURBED}: other tasks used its CPUs", "dim")
        if self._of_proofs:
            told = f"Not listed: {many(self._of_proofs, 'run')} of proofs. p at a chapter's compare step shows them."
            yield from wrap(Text(told, "dim"), width, "    ")

    def _figure(self, run: Run, percentile: str) -> str:
        """Return a run's value at a percentile, behind FEW_STALLS if few stalls decide it, as everywhere else."""
        value = nice_ns(run.latency.percentiles.get(percentile) if run.latency else None)
        return f"{FEW_STALLS if percentile in self._few[run.id] else ''}{value}"

    def _named(self, run: Run, room: int | None = None) -> str:
        """Return the title of a run's chapter, its label and its marks as one text of at most ``room`` characters.

        If the text is too long, cut the end of the label to not less than _LEAST_LABEL characters, then the end of the
        chapter. Leave the chapter out where less than _LEAST_CHAPTER characters of it would be left. If ``room`` is
        None, return the full text.
        """
        aside = f" ({HANDOFF if run.by_handoff else TRANSIT})" if run.id in self._of_transit else ""
        aside += f" ({run.mark})" if run.mark else ""
        aside += "" if run.complete else " (stopped)"
        aside += f" ({_DISTURBED})" if run.disturbed else ""
        label = clean(run.label or run.id, NAME)
        chapter = self._titles.get(run.id, "")
        # A title that is a question has its own sign.
        between = " " if chapter.endswith("?") else ": "
        named = f"{chapter}{between}{label}" if chapter else label
        if room is None or len(named) + len(aside) <= room:
            return named + aside
        for_label = max(room - len(f"{chapter}{between}{aside}"), min(len(label), _LEAST_LABEL))
        if chapter and (left := room - len(f": {aside}") - for_label) >= _LEAST_CHAPTER:
            cut = clean(chapter, left)
            return f"{cut}{between if cut == chapter else ': '}{clean(label, for_label)}{aside}"
        return clean(clean(label, max(room - len(aside), 4)) + aside, room)

    def _detail(self, width: int) -> Iterable[Text]:
        """Yield facts about the run under the cursor."""
        run = self._under
        if run is None:
            return
        placed = run.placement
        cpus = [(n, getattr(placed, n)) for n in ("producer", "accumulator", "journaller", "sampler")]
        where = ", ".join(f"{name} {cpu}" for name, cpu in cpus if cpu is not None)
        yield Text()
        yield small_title("THIS RUN")
        length = f"{len(run.blocks)} blocks, {run.duration_s:.1f} s"
        facts = [
            ("id", clean(run.id, LABEL)),
            ("workload", _how(run)),
            ("length", length if run.complete else f"{length}, stopped early"),
            ("CPUs", where or "chosen by the scheduler"),
            ("clock", f"{clean(run.clock.source, WORD)}, steps of {run.clock.resolution_ns} ns"),
            ("noise", clean(run.noise, SHORT) if run.noise else "none made"),
            *(("mark", f"{run.mark}: {meaning}") for meaning in mark_notes(run.mark).values()),
        ]
        if INTENDED in run.histograms:
            tail = self._judged[run.id]
            value = nice_ns(of_transit(run).percentile(tail))
            facts.append((TRANSIT, f"its p{tail} is {value}; the latencies above count from when a message was due"))
        for rate in run.stalls.rates:
            in_stalls = nice_ns(rate.stolen_ns_per_second)
            told = f"{nice_number(rate.per_second)} stalls a second, {in_stalls} of each second"
            facts.append((f"over {nice_ns(rate.threshold_ns)}", told))
        if others := disturbance_clause(KnownRun(run, self.workshop.context.runs.known_causes(run))):
            facts.append(("other tasks", others))
        for name, value in facts:
            yield from labelled(name, value, width, 13)

    # -- keys ------------------------------------------------------------------------------------------------------

    def action_vertical(self, by: int) -> None:
        if self._runs:
            self._cursor = max(0, min(self._cursor + by, len(self._runs) - 1))
            self.redraw()
            row = Region(0, self._cursor * self._row_height, 1, 1 + self._row_height)
            self.query_one("#runs-list", Pane).scroll_to_region(row, animate=False)

    def to_end(self, by: int) -> None:
        self.action_vertical(by * len(self._runs))

    def action_draw(self) -> None:
        run = self._under
        if run is None:
            return
        others = {other.workload for other in self._drawn} - {run.workload}
        if others:
            self._shown = {run.id}
            kinds = f"{clean(run.workload, WORD)} and {clean(others.pop(), WORD)}"
            self.tell(f"Curves of {kinds} cannot share a chart. The other curves are now hidden.")
            return
        if run.id not in self._shown and len(self._shown) >= MOST_DRAWN:
            self.tell(f"The chart already shows {MOST_DRAWN} curves, the most that can be told apart. Hide one first.")
            return
        self._shown ^= {run.id}
        self.tell("")

    @on(ListSheet.Clicked)
    def _clicked(self, message: ListSheet.Clicked) -> None:
        row = (message.line - 1) // self._row_height  # below the line of titles
        if 0 <= row < len(self._runs):
            self._cursor = row
            self.action_draw()

    def action_all(self) -> None:
        every = self._newest()
        self._shown = set() if every <= self._shown else every
        self.redraw()

    def action_table(self) -> None:
        self._table, self._heat = not self._table or self._heat, False
        self.redraw()

    def action_heat(self) -> None:
        if self._under is not None:
            self._heat = not self._heat
        self.tell("" if self._runs else "There is no run yet, so there is no heat map.")

    def action_imported(self) -> None:
        if self._imports:
            self._with_imports = not self._with_imports
        self.tell("" if self._imports else curves.NOTHING)

    def action_causes(self) -> None:
        run = self._under
        if run is None:
            return
        if self.workshop.context.runs.traced(run):
            self.app.push_screen(EvidenceScreen(run))
        else:
            self.tell(f"{NO_TRACE} To get a trace, measure with --evidence, or press v at a chapter's explain step.")


def _wide(head: str) -> int:
    """Return the width, in characters, of a table column with the title ``head``."""
    return _JUDGED_WIDTH if head == _JUDGED else max(_COLUMN, len(head))


def _how(run: Run) -> str:
    """Describe a run's workload and its pace."""
    name = clean(run.workload, WORD)
    if run.workload not in PACED:
        return name if run.duty == 100 else f"{name}, busy {run.duty} %"
    paced = f", pacing {clean(run.pacing, WORD)}" if run.workload == "ring" else ""
    return f"{name}{paced}, every {nice_ns(run.interval_ns)}"
