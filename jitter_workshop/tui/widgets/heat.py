"""Show the heat map of a run on a screen, in the present size."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rich.text import Text
from textual.widget import Widget

from jitter_workshop.tui.core.theme import PaintedApp

if TYPE_CHECKING:
    from jitter_workshop.stats.heat import Heat


class HeatView(Widget):
    """Show which latencies of a run were measured at which times, as a heat map. If no heat map can be shown, show a
    sentence.
    """

    DEFAULT_CSS = "HeatView { width: 1fr; height: 1fr; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.heat: Heat | None = None
        self.said = ""
        self.name_of_run = ""

    def show(self, heat: Heat | None, said: str, run: str) -> None:
        """Draw this heat map. If ``heat`` is None, show the sentence ``said`` instead. ``run``: the id of the heat
        map's run."""
        self.heat, self.said, self.name_of_run = heat, said, run
        self.refresh()

    def render(self) -> Text:
        width, height = self.content_size
        app = cast(PaintedApp, self.app)
        if self.heat is None:
            return Text(self.said, style=app.palette.dim)
        from jitter_workshop.chart import heat

        return heat.draw_heat_map(self.heat, width, height, app.palette.name)
