"""Hold the state of a proof's screen and show it: the cost, the rounds as they are made, the verdict."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical

from jitter_workshop.flow.proving.proof_run import ProofStep, Prover
from jitter_workshop.model.proof import Proof, ProofPlan
from jitter_workshop.model.text import clean
from jitter_workshop.model.verdict import Order
from jitter_workshop.presenter import proof_lines as views
from jitter_workshop.presenter import proof_words as words
from jitter_workshop.presenter.lines import wrap
from jitter_workshop.presenter.prose import styled
from jitter_workshop.stats.verdicts import SoFar
from jitter_workshop.tui.background.proving_run import Proving
from jitter_workshop.tui.screens.host.host_change_screen import HandWork
from jitter_workshop.tui.widgets.keybar import Shown
from jitter_workshop.tui.widgets.sheet import Pane, Sheet

if TYPE_CHECKING:
    from jitter_workshop.flow.chapters.walk import ChapterSession

_FRAME = 13
"""Lines of the running page besides the picture of its rounds."""
_LEAST_ROWS, _MOST_ROWS = 5, 27


class ProvingShow(HandWork):
    """Show the screen of a proof. A subclass handles the keys and the proof itself."""

    def __init__(self, walk: ChapterSession, proof: Proof | None = None) -> None:
        super().__init__()
        self.walk = walk
        self.proof = proof
        """The newest proof of this chapter."""
        self._page: Literal["cost", "rounds", "verdict"] = "cost" if proof is None else "verdict"
        self.under_way: Proving | None = None
        self._prover: Prover | None = None
        self._plan: ProofPlan | None = None
        self._why_no_plan = ""
        self._chosen = 0
        self._message = ""
        self._forget_rounds()

    def _forget_rounds(self) -> None:
        self._step: ProofStep | None = None
        self._seen: SoFar | None = None
        self._orders: tuple[Order, ...] = ()
        self._left_s, self._left_at = 0.0, 0.0
        self._restoring = False
        self._in_block = False
        self._asking: Literal["", "due", "shown"] = ""
        self._asked = False
        """True if the question is on the terminal."""

    def body(self) -> ComposeResult:
        with Vertical(id="proof-main"), Pane(id="proof-pane"):
            yield Sheet(self._lines, id="proof-sheet")
        yield Sheet(self._progress, id="proof-progress")
        yield Sheet(self._say, id="say")

    def heading(self) -> str:
        return f"{clean(self.walk.chapter.title, 50)} · prove it"

    def on_resize(self) -> None:
        self._show()

    def on_screen_resume(self) -> None:
        self._show()

    # -- display -------------------------------------------------------------------------------------------------------

    def _show(self) -> None:
        if not self.is_mounted:
            return
        running = self.under_way is not None
        self.set_class(running, "-measuring")
        self.sheet("#proof-sheet").show(self._lines)
        self.sheet("#proof-progress").show(self._progress)
        self._show_said()

    def _show_said(self) -> None:
        self.sheet("#say").show(self._say)
        self.sheet("#say").set_class(not self._said(), "-empty")
        self.refresh_keys()

    def _tell(self, text: str) -> None:
        self._message = text
        self._show()

    def _lines(self, width: int) -> Iterable[Text]:
        if self._page == "verdict" and self.proof is not None:
            return views.verdict(self.proof, width)
        if self._page == "rounds" and self._plan is not None:
            rows = min(max(self.size.height - _FRAME, _LEAST_ROWS), _MOST_ROWS)
            planned = self._rounds
            return views.rounds_so_far(self._seen, self._orders, self._step, planned, rows, width)
        if self._plan is None:
            told = f"Cannot be proven now: {self._why_no_plan}." if self._why_no_plan else "Reading the plan…"
            return wrap(Text(told, "text"), width)
        return views.cost(self._plan, self._choices, self._chosen, self.proof, width)

    def _progress(self, width: int) -> Iterable[Text]:
        running = self.under_way
        if running is None:
            return ()
        if running.stopping or self._restoring:
            what = "Stopping, and giving back what is set…" if running.stopping else "Giving back what is set…"
            return [Text(what, "accent")]
        if running.waiting:
            return wrap(Text(f"{clean(running.waiting, 300)} Esc stops waiting.", "text"), width)
        left_s = max(self._left_s - (time.monotonic() - self._left_at), 0.0)
        return views.progress(self._step, running.progress, self._rounds, left_s, width)

    def _said(self) -> str:
        if self._asking == "shown":
            return words.stop_question(len(self._orders))
        return self._message

    def _say(self, width: int) -> Iterable[Text]:
        said = self._said()
        return wrap(styled(said, "text"), width, "▸ ", "  ") if said else ()

    def keys(self) -> Sequence[Shown]:
        if self.under_way is not None:
            if self.under_way.stopping:
                return ()
            if self._asking == "shown":
                return (("proving.enter", "stop and keep"), ("proving.close", "go on"))
            return (("proving.close", "stop waiting" if self.under_way.waiting else "stop…"),)
        if self.frame.at_work:
            return ()
        if self._page == "verdict":
            more = "more rounds" if words.asked_for(self.proof) else "prove again"
            return (("proving.again", more), ("proving.copy", ""), ("app.help", ""), ("proving.close", ""))
        if self._plan is None:
            return (("app.help", ""), ("proving.close", ""))
        return (("proving.enter", ""), ("proving.number", ""), ("app.help", ""), ("proving.close", ""))

    @property
    def _choices(self) -> tuple[int, ...]:
        return words.choices(self.proof)

    @property
    def _rounds(self) -> int:
        """Return the number of rounds that are chosen, or are made."""
        return self._choices[self._chosen]
