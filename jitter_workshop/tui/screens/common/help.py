"""Show the help page: every key with its effect, and the words that the workshop uses. Also show the glossary of the
present screen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from jitter_workshop.model.text import PARAGRAPH, capital, clean
from jitter_workshop.presenter.course.chapter import AFTER_A_STEP, DONE, SEEN
from jitter_workshop.presenter.course.path import HALF_DOT
from jitter_workshop.presenter.text.glossary import term_lines
from jitter_workshop.presenter.text.lines import Lines, in_columns, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.core.actions import BY_ID, SCOPE_TITLES, of_scope
from jitter_workshop.tui.screens.common.base import Page, WorkshopScreen
from jitter_workshop.tui.widgets.chart import ChartView
from jitter_workshop.tui.widgets.keybar import key_and_label
from jitter_workshop.tui.widgets.sheet import Pane, Sheet

WORDS: tuple[tuple[str, str], ...] = (
    ("p99.9", "999 of 1,000 messages were at least this fast; one was slower. The slower ones are the tail."),
    (
        "latency",
        "from the moment a message was due to the moment a consumer has read it. The time that a stopped sender loses "
        "counts, too.",
    ),
    ("transit", "the part of the latency that begins when the message is ready to be sent."),
    ("producer", "the thread that publishes messages into the ring buffer."),
    ("accumulator", "the consumer whose latency the charts show."),
    ("journaller", "a second consumer that also writes each record to a journal."),
    ("stall", "a stretch of time in which a measured thread did none of its work; one stall makes many messages late."),
    ("knee", "the percentile at which a curve leaves its noise-free level. It depends on how often the noise comes."),
    ("✓", f"{AFTER_A_STEP}: {DONE}."),
    ("◌", f"{AFTER_A_STEP}: {SEEN}."),
    ("◐", f"{HALF_DOT}. Or the chapter is begun."),
    (
        "without it",
        "in a table of causes: the share of messages that would be below the limit if this cause had taken no time.",
    ),
    ("hot CPUs", "the CPUs that run the measured threads. Housekeeping CPUs run all the rest."),
    ("migration", "the scheduler moved a thread to another CPU, whose caches are cold for the thread."),
    (
        "preempted",
        "the kernel took the CPU from a thread that could have gone on (an involuntary switch). Slept: the thread gave "
        "up the CPU itself.",
    ),
    ("steal", "time in which the hypervisor ran something else on our CPU."),
    ("a round", "of a proof: a new run without the change and one with it; chance decides the order."),
    ("proven", "proven by at least ten rounds, corrected for the number of lines. Two single runs prove nothing."),
    (
        "● ■ ◆ on curves",
        "signs that tell the curves apart. They also mark figures of the legend: p50, p99.9 (or the percentile of the "
        "chapter's question) and the longest. Each is in the row of its value; signs of one place stand left and right "
        "of its percentile. × is your guess.",
    ),
    (
        "shaded space",
        "between the curves before and after a change: better where the second curve is lower, worse where it is "
        "higher.",
    ),
    (
        "amber, green, red",
        "amber: look here first. Green: done, right or better. Red: failed, wrong or worse. A sign or a word says "
        "the same. Colours of curves and of causes only tell them apart.",
    ),
    (
        "dotted curve",
        "fewer than ten samples lie beyond this point, so its place depends more on chance than on the host.",
    ),
    ("published", "curves that others measured on a laptop and published, for scale, not for comparison."),
    (
        "by cyclictest …",
        "imported: another tool measured these curves. You can look at them, but they prove nothing.",
    ),
    ("on a recording", "this host lacks the settings of a chapter. A recording of another host is shown instead."),
    (
        "applied",
        (
            "settings that this tool wrote as root. They are restored when you leave the workshop, unless you keep "
            "them; u restores them at once."
        ),
    ),
    (
        "setting, curve, guess",
        "columns of a chapter: its change was made; a run was kept; the guess was right, or the noise named.",
    ),
    ("✓ ≈ ✗ · –", "marks in these columns of a chapter: yes; near; no; not yet; not in this chapter."),
    ("✓ ▲ – ·", "state of a check: as it should be; can be better; not on this host; for information."),
    ("÷ row 1", "a value divided by the same value in row 1 of the whole course; 1/57 is 57 times less."),
)
NOW = "ON THIS PAGE, NOW"
_WHERE = re.compile(r"^(?:At '[^:]*|Before a run|On a page with more below): ")
"""Match the words before an action's meaning that say where its key acts. On this page it does."""
_ONE_COLUMN, _TWO_COLUMNS = 92, 120
"""The widest page of one column, and the least width for two: keys and words side by side."""
_BETWEEN = 4
"""The blanks between two columns."""
_KEYS = "↑ ↓ scroll · y copies · Esc closes"


class _CopiedPage(Page):
    """Show a page of text that a key copies as a whole."""

    def key_words(self) -> str:
        return _KEYS

    def action_copy(self) -> None:
        width = min(self.sheet("#page-sheet").content_size.width, _ONE_COLUMN)
        self.app.copy_to_clipboard("\n".join(line.plain for line in self.lines(width)))


class HelpPage(_CopiedPage, scope="dialog"):
    """Show the present page's keys, then all keys. Then show the terms of the workshop with their meanings."""

    STEP = 4

    def lines(self, width: int) -> Iterable[Text]:
        stack = self.app.screen_stack
        below: str = getattr(stack[-2] if len(stack) > 1 else None, "scope", "home")
        head = [Text("HELP", "bold text")]
        if self.frame.notices:
            head += [Text(), Text("NOTICES", "bold dim")]
            for notice in self.frame.notices:
                head += wrap(Text(clean(notice, PARAGRAPH), "text"), width, "! ")
        yield from head
        room = self.query_one(Pane).size.height - len(head)
        if width < _TWO_COLUMNS:
            yield from (*_no_heading_last(self._keys_of(below, width), room), Text(), *self._words(width))
            return
        column = (width - _BETWEEN) // 2
        left, right = _no_heading_last(self._keys_of(below, column), room), [Text(), *self._words(column)]
        yield from in_columns(left, right, column, _BETWEEN)

    def on_mount(self) -> None:
        super().on_mount()
        self.call_after_refresh(self.redraw)

    def on_resize(self) -> None:
        super().on_resize()
        # The pane has its new height only after the layout.
        self.call_after_refresh(self.redraw)

    def _keys_of(self, below: str, width: int) -> Iterator[Text]:
        """Yield the keys of the footer of the screen below, then the keys of all screens. ``below``: the group of keys
        of the screen below, which comes first."""
        yield from self._keys_now(width)
        order = [below, "app", *(s for s in SCOPE_TITLES if s not in (below, "app"))]
        in_class = self.frame.workshop.context.class_view is not None
        for scope in order:
            actions = of_scope(scope, in_class=in_class)
            if not actions:
                continue
            yield Text()
            yield Text(SCOPE_TITLES[scope], style=f"bold {'accent' if scope == below else 'dim'}")
            for action in actions:
                first = f"{action.shown:>7}  "
                lines = wrap(Text(action.tooltip, "text"), width, first, " " * 9)
                lines[0].stylize("bold cool", 0, 7)
                yield from lines

    def _keys_now(self, width: int) -> Iterator[Text]:
        """Yield the keys that the screen below names now, each with what it does there; none below another page."""
        stack = self.app.screen_stack
        screen = stack[-2] if len(stack) > 1 else None
        if not isinstance(screen, WorkshopScreen):
            return
        yield Text()
        yield Text(NOW, "bold accent")
        named = screen.keys()
        for shown in named:
            key, label = key_and_label(shown)
            meaning = _WHERE.sub("", BY_ID[shown[0]].tooltip)
            said = Text.assemble((capital(label), "bold text"), (f": {meaning[:1].lower()}{meaning[1:]}", "text"))
            lines = wrap(said, width, f"{key:>7}  ", " " * 9)
            lines[0].stylize("bold cool", 0, 7)
            yield from lines

    def _words(self, width: int) -> Iterator[Text]:
        yield Text("WORDS", "bold dim")
        for word, meaning in WORDS:
            line = Text.assemble((f"{word}: ", "bold cool"), meaning, style="text")
            yield from wrap(line, width, "  ", "    ")


def _no_heading_last(lines: Iterable[Text], room: int) -> Lines:
    """Return the lines of the keys, with a blank line before a heading that would be the last of the first ``room``
    lines: the heading then stands on the next page, above its keys. ``room``: 0 if it is not known yet."""
    found = list(lines)
    if 0 < room < len(found) and found[room - 1].plain in (NOW, *SCOPE_TITLES.values()):
        found.insert(room - 1, Text())
    return found


class GlossaryPage(_CopiedPage, scope="dialog"):
    """Show what each term of the screen or page below means, each in one sentence."""

    def lines(self, width: int) -> Iterable[Text]:
        below = self.app.screen_stack[-2]
        # The names of curves come last: they say least.
        shown: list[Sheet | ChartView] = [*below.query(Sheet), *below.query(ChartView)]
        return term_lines("\n".join(one.for_glossary() for one in shown if one.region.area), width)
