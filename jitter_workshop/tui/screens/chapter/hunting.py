"""Let the learner hunt a hidden noise on a chapter's screen.

The workshop hides one of several noises. The learner chooses the noise from a list of suspects, does something against
it, and measures again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.chapters import cure
from jitter_workshop.flow.chapters.hunt import NO_NOISE_HIDDEN, Hunt, HuntAnswer
from jitter_workshop.model.change import RestoreResult
from jitter_workshop.model.course import TREATED, StepName
from jitter_workshop.model.text import LABEL, LINE, SENTENCE, capital, clean
from jitter_workshop.presenter.course import hunt as words
from jitter_workshop.presenter.host.changes import came_back, others_warned
from jitter_workshop.presenter.text.lines import wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.screens.chapter.page import ChapterPage
from jitter_workshop.tui.screens.chapter.runs import BackgroundRuns
from jitter_workshop.tui.screens.common.base import IN_CLIPBOARD
from jitter_workshop.tui.screens.common.dialogs import ChoosingPage, Question
from jitter_workshop.tui.widgets.keybar import Shown

NONE_HERE = "No noise is hidden here."
LOOK_EVERY_S = 1.0
"""Interval between two looks at a hidden noise, in s."""

CURES = "try a cure"
"""The label of Enter if it opens the page with the cures."""
MOST_CPUS = 8
"""The largest number of other CPUs to choose from."""
_ACTING = "↑ ↓ {numbers} choose · Enter measures · y copies · Esc goes back"
_NAMING = "↑ ↓ {numbers} choose · Enter names it · x gives up · Esc goes on looking"
_ANSWERED = "Esc closes"


@dataclasses.dataclass(frozen=True)
class HuntRole:
    """Say what a step has to do with a hunt.

    ``asks``: the learner names the hidden noise before the next step. ``cures``: the learner then tries a cure against
    it, or ends it. ``hides``: the workshop hides a noise before it
    makes the step's run. ``explains``: the slot of the run whose causes matter at the step. ``remembers``: the number
    of earlier hunts that the step tells. ``tells_standing``: the step tells the state of the present hunt.
    """

    asks: bool = False
    cures: bool = False
    hides: bool = False
    explains: StepName = "again"
    remembers: int = 0
    tells_standing: bool = True


class StepHunt:
    """Answer the questions of one step about the hunt. ``after_change``: True for the steps after a change."""

    def __init__(self, page: ChapterPage, role: HuntRole, *, after_change: bool) -> None:
        self._page = page
        self._role = role
        self._after_change = after_change

    @property
    def to_hide(self) -> bool:
        """Return True if the workshop must hide a noise before it measures this step."""
        return self._first and not self._page.workshop.hunts.hiding

    @property
    def _first(self) -> bool:
        """Return True if the step's run beside a hidden noise is not made yet."""
        walk = self._page.walk
        return self._role.hides and walk.hunts and walk.runs.run_in("again") is None

    @property
    def to_name(self) -> bool:
        """Return True if the learner has to name a hidden noise before the next step."""
        return self._role.asks and self._page.walk.hunts and words.unanswered(self._page.workshop.hunts.hunt)

    @property
    def to_cure(self) -> bool:
        """Return True if the learner has named the noise, and can try a cure before the next step."""
        walk = self._page.walk
        named = self._role.cures and walk.hunts and words.named(self._page.workshop.hunts.hunt)
        return named and walk.runs.run_in("again") is not None

    def said(self) -> str:
        """Return the sentence on the hunt above the keys; "" if there is nothing to say."""
        walk, role = self._page.walk, self._role
        if not walk.hunts:
            return ""
        measured = walk.runs.run_in("again") is not None
        standing = words.hunt_state(self._page.workshop.hunts.hunt, measured) if role.tells_standing else ""
        before = words.past_hunts(walk.progress.hunts, role.remembers) if role.remembers else ""
        kept = words.kept_away(self._kept_away_by, "press u and restore it")
        # After a change, the outcome of the hunt is more important than the next hunt.
        first, then = (before, kept) if self._after_change else (kept, before)
        return standing or first or then or (words.FIRST if self._first else "")

    @property
    def _kept_away_by(self) -> tuple[str, ...]:
        """Return the applied tunables that would keep the next hidden noise away; () during a hunt, in which they can
        be the learner's cure."""
        hunts = self._page.workshop.hunts
        return () if words.in_hunt(hunts.hunt) else hunts.kept_away_by()

    def keys(self, enter: str) -> list[Shown]:
        """Return the keys of the hunt. They come before the step's other keys, because the hunt is more important.
        ``enter``: the label of Enter. If Enter tries a cure, no other key for this is named."""
        walk, found = self._page.walk, self._page.workshop.hunts.hunt
        if not walk.hunts:
            return []
        causes: list[Shown] = [("chapter.causes", "")] if walk.runs.run_in(self._role.explains) is not None else []
        cures = words.in_hunt(found) and walk.runs.run_in("again") is not None and enter != CURES
        cure: list[Shown] = [("chapter.cure", "")] if cures else []
        if self.to_cure:
            # Once the noise is named, its cure is more important than its causes.
            return [("chapter.enough", ""), *cure, ("chapter.again", "measure again"), *causes]
        if self.to_name:
            # Enter names it.
            return [("chapter.without", ""), *causes, *cure]
        if words.unanswered(found):
            return [("chapter.name", ""), *causes, *cure]
        if self._after_change and not self.to_hide and not words.named(found):
            return [("chapter.hunt", "hide another" if found is not None else ""), *causes]
        return [*causes, *cure]

    def first_keys(self) -> list[Shown]:
        """Return the key that comes before all others: it restores the settings that keep noises away."""
        return [("chapter.restore", "let noises in")] if self._page.walk.hunts and self._kept_away_by else []


class ChapterHunt:
    """Start, name and end the hidden noise of a chapter. Threads do the work. The noise ends when the chapter's screen
    is closed."""

    def __init__(self, page: ChapterPage, runs: BackgroundRuns, enter_step: Callable[[], None]) -> None:
        self._page = page
        self._screen = page.screen
        self._runs = runs
        self._enter_step = enter_step
        self._ran = False
        """True if the noise ran at the last look."""

    def watch(self) -> None:
        """Begin to check every LOOK_EVERY_S seconds if the hidden noise still runs.

        The noise may end by itself, or be ended from another terminal. The screen says so, but not before the present
        run has ended.
        """
        if self._page.walk.hunts:
            self._screen.set_interval(LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        if self._page.run is not None or self._page.frame.at_work:
            return
        hunt = self._page.workshop.hunts.hunt
        ran, self._ran = self._ran, hunt is not None and hunt.runs
        if ran and not self._ran and words.in_hunt(hunt):
            self._screen.tell(words.noise_ended_message(hunt, self._page.walk.runs.run_in("again") is not None))

    def end(self) -> None:
        """End the noise if one is running."""
        if self._page.walk.hunts:
            self._page.workshop.hunts.end()

    # -- hiding ----------------------------------------------------------------------------------------------------

    def ask(self) -> None:
        """Ask the user if the workshop may hide a noise, and list the possible noises. Enter hides one of them."""
        walk, workshop = self._page.walk, self._page.workshop
        if not walk.hunts:
            self._screen.tell("No noise is hidden in this chapter.")
            return
        if words.unanswered(workshop.hunts.hunt) and workshop.hunts.hiding:
            self._screen.tell("A hidden noise is running already: press i to name it or to give up.")
            return
        if walk.runs.run_in("measure") is None:
            self._screen.tell(words.FIRST_QUIET)
            return
        try:
            suspects = workshop.hunts.suspects(walk)
        except WorkshopError as error:
            if not self.let_in(hides=True):
                self._page.frame.show_error(error)
            return
        # An earlier message is no answer to this question.
        self._screen.tell("")

        def about(width: int) -> Iterable[Text]:
            yield from wrap(words.hunt_question(suspects), width)
            named = " · ".join(clean(suspect.title, LABEL) for suspect in suspects)
            yield from wrap(Text(named, "bold text"), width, "  ", "  ")
            yield Text()
            yield from wrap(Text(f"{words.BOUNDS} {words.YOURS}", "dim"), width)

        keys = "Enter hides a noise · Esc changes nothing"
        hide = partial(self._page.frame.class_turn.with_turn, self._hide)
        self._screen.app.push_screen(Question("Hide a noise?", about, keys, hide))

    def _hide(self) -> None:
        self._screen.tell("Hiding a noise…")
        hunts, walk = self._page.workshop.hunts, self._page.walk
        self._screen.on_thread(partial(hunts.begin, walk), self._hidden)

    def _hidden(self, hunt: Hunt) -> None:
        self._ran = hunt.runs
        self._page.walk.go("again")
        self._enter_step()
        self._screen.tell(f"{words.begun(hunt)} Enter measures with this noise.")

    # -- letting noises in -----------------------------------------------------------------------------------------

    def let_in(self, *, hides: bool = False) -> bool:
        """Ask if the settings that keep noises off the measured CPU may be restored, and return True. Return False if
        there are no such settings, or if the chapter has no hunts. During a hunt, the settings can be the learner's
        cure. ``hides``: True if the learner wants the next noise to be hidden, so that they are no cure."""
        workshop = self._page.workshop
        cure_now = not hides and words.in_hunt(workshop.hunts.hunt)
        kept = workshop.hunts.kept_away_by() if self._page.walk.hunts else ()
        if not kept:
            return False
        warned = others_warned(workshop.of_others(), kept)

        def about(width: int) -> Iterable[Text]:
            said_first = words.can_be_cure(kept) if cure_now else words.kept_away(kept, "restore it")
            yield from wrap(Text(said_first, "text"), width)
            for said in warned:
                yield from wrap(Text(said, "text"), width)

        keys = "Enter restores the settings · Esc changes nothing"
        title = "Restore the settings?" if cure_now else "Let the noises in?"
        self._screen.app.push_screen(
            Question(title, about, keys, partial(self._restore, partial(self._restored, cure_now)))
        )
        return True

    def measure(self, slot: StepName) -> None:
        """Make a step's run. Before the quiet run of a hunt, ask if the settings that keep noises away may be restored:
        the run beside the hidden noise is made without them."""
        workshop = self._page.workshop
        kept = () if words.in_hunt(workshop.hunts.hunt) else workshop.hunts.kept_away_by()
        if slot != "measure" or not self._page.walk.hunts or not kept:
            self._runs.measure(slot)
            return

        def about(width: int) -> Iterable[Text]:
            for said in (words.quiet_run_without(kept), *others_warned(workshop.of_others(), kept)):
                yield from wrap(Text(said, "text"), width)

        def restored(result: RestoreResult) -> None:
            self._screen.tell(came_back(result))
            if not workshop.hunts.kept_away_by():
                self._runs.measure(slot)

        keys = f"{words.MEASURES_WITHOUT} · Esc changes nothing"
        restores, keeps = partial(self._restore, restored), partial(self._runs.measure, slot)
        self._screen.app.push_screen(Question("Measure without these settings?", about, keys, restores, keeps))

    def _restore(self, restored: Callable[[RestoreResult], None]) -> None:
        self._screen.tell("Restoring…")
        self._screen.on_thread(self._page.workshop.let_noises_in, restored, self._screen.refused("Not restored"))

    def _restored(self, cure_now: bool, result: RestoreResult) -> None:
        """Tell what was restored. ``cure_now``: True if it could be the learner's cure, which the quiet run did not
        have."""
        quiet = self._page.walk.runs.run_in("measure") is not None and not cure_now
        self._screen.tell(" ".join([came_back(result), *([words.RESTORED_FOR_HUNT] if quiet else ())]))

    # -- naming and acting -----------------------------------------------------------------------------------------

    def name(self) -> None:
        """Open the page on which the learner chooses among the suspects."""
        hunt, hunts = self._page.workshop.hunts.hunt, self._page.walk.hunts
        if not hunts or hunt is None or not words.unanswered(hunt):
            none = words.hunt_state(hunt) or f"{capital(NO_NOISE_HIDDEN)}. x hides one."
            self._screen.tell(none if hunts else NONE_HERE)
        elif self._page.run is None:
            self._screen.app.push_screen(SuspectsPage(hunt, self._over), self._named)

    def _over(self) -> None:
        """Draw the chapter below the open page again, because no hidden noise runs any more."""
        self._screen.tell("")
        self._screen.show_title()

    def _named(self, _: None) -> None:
        walk = self._page.walk
        measured = walk.runs.run_in("again") is not None
        self._screen.tell(words.after_name(walk.progress.hunts, self._page.workshop.hunts.hunt, measured))
        self._screen.show_title()

    def enough(self) -> None:
        """End the noise that the learner has named."""
        self._page.workshop.hunts.enough()
        self._screen.tell(words.ENOUGH)
        self._screen.show_title()

    def cure(self) -> None:
        """Open the page with commands against the hidden noise, and offer one more run. If no noise waits for an
        answer of the learner, show a sentence that says so.
        """
        walk = self._page.walk
        beside = walk.runs.run_in("again")
        if not walk.hunts or beside is None or not words.in_hunt(self._page.workshop.hunts.hunt):
            no_cure = words.no_cure("press x", "m to measure")
            self._screen.tell(no_cure if walk.hunts else "No noise is hidden in this chapter.")
            return
        self._screen.app.push_screen(CuresPage(self._page.workshop.hunts.other_cpus(beside), self._try))

    def _try(self, cpu: int | None) -> None:
        try:
            request = cure.request(self._page.walk, cpu)
            self._page.walk.go("compare")
        except WorkshopError as error:
            self._page.frame.show_error(error)
            return
        self._enter_step()
        self._runs.make(TREATED, self._page.as_set(request))


class SuspectsPage(ChoosingPage, scope="suspects"):
    """Show the suspects of a hunt, for the learner to name the hidden noise.

    After a wrong answer the learner can name another one. The page's work ends after the right answer, or if the
    learner gives up. ``over``: a function to call then, while this page is still open.
    """

    def __init__(self, hunt: Hunt, over: Callable[[], None]) -> None:
        super().__init__()
        self._hunt = hunt
        self._tell_over = over
        self._finding: HuntAnswer | None = None
        self._cleared: set[str] = set()

    @property
    def _over(self) -> bool:
        return not words.unanswered(self._hunt)

    def lines(self, width: int) -> Iterable[Text]:
        yield Text()
        if not self._over:
            yield Text("Which noise is it?", "bold text")
            yield Text()
            for index, suspect in enumerate(self._hunt.suspects):
                here, cleared = index == self.cursor, suspect.id in self._cleared
                sign = "✗" if cleared else " "
                style = "bold accent" if here else "dim" if cleared else "text"
                title = clean(suspect.title, LABEL)
                yield Text(f"{'▸' if here else ' '} {index + 1} {sign} {title}", style=style)
            yield Text()
        finding = self._finding
        if finding is None:
            yield from wrap(Text(words.hunt_state(self._hunt), "dim"), width)
            return
        colour = "good" if finding.right else "text"
        yield from wrap(Text(clean(words.hunt_answer_line(finding, self._hunt), LINE), style=f"bold {colour}"), width)
        for heading, sentence in words.reasons(finding, self._hunt):
            if heading:
                yield Text()
                yield Text(heading, "dim")
            yield from wrap(Text(clean(sentence, SENTENCE), "text"), width)

    def key_words(self) -> str:
        return _ANSWERED if self._over else _NAMING.format(numbers=words.digit_keys(len(self._hunt.suspects)))

    def digit(self, index: int) -> None:
        if not self._over and 0 <= index < len(self._hunt.suspects):
            self.cursor = index
            self._finding = None
            self.redraw()

    def action_agree(self) -> None:
        if self._over:
            self.dismiss(None)
            return
        kind = self._hunt.suspects[self.cursor].id
        self._finding = self.frame.workshop.hunts.answer(kind)
        if not self._finding.right:
            self._cleared.add(kind)
        else:
            self._tell_over()
        self.redraw()

    def action_give_up(self) -> None:
        """Ask first: a hunt that was given up cannot be continued."""
        if self._over:
            return

        def about(width: int) -> Iterable[Text]:
            return wrap(Text(words.GIVING_UP, "text"), width)

        keys = "Enter gives up · Esc goes on looking"
        self.app.push_screen(Question("Give up?", about, keys, self._give_up))

    def _give_up(self) -> None:
        # The noise may have ended while the question was open.
        if not self._over:
            self._finding = self.frame.workshop.hunts.give_up()
            self._tell_over()
            self.redraw()


class CuresPage(ChoosingPage, scope="cures"):
    """Show commands against the hidden noise, and offer CPUs for one more run.

    ``cpus``: other CPUs for the measured thread. ``measure``: a function to call with the chosen CPU, or with None for
    the CPU of the previous run.
    """

    def __init__(self, cpus: Sequence[int], measure: Callable[[int | None], None]) -> None:
        super().__init__()
        self._choices: tuple[int | None, ...] = (None, *cpus[:MOST_CPUS])
        self._commands = words.cures(cpus[0] if cpus else None)
        self._measure = measure
        self._copied = False

    def lines(self, width: int) -> Iterable[Text]:
        yield Text()
        yield Text("Do something against the noise, then measure", "bold text")
        yield Text()
        yield from wrap(Text(words.ELSEWHERE, "text"), width)
        for command, what in self._commands:
            yield from wrap(Text(f"$ {command}", "code"), width, "  ", "    ")
            yield from wrap(Text(what, "dim"), width, "    ", "    ")
        yield Text()
        for index, cpu in enumerate(self._choices):
            here = index == self.cursor
            style = "bold accent" if here else "text"
            yield Text(f"{'▸' if here else ' '} {index + 1} {words.offer_of_new_run(cpu)}", style=style)

    def key_words(self) -> str:
        keys = _ACTING.format(numbers=words.digit_keys(len(self._choices)))
        return f"The commands are {IN_CLIPBOARD}." if self._copied else keys

    def digit(self, index: int) -> None:
        if 0 <= index < len(self._choices):
            self.cursor = index
            self._copied = False
            self.redraw()

    def action_copy(self) -> None:
        self.app.copy_to_clipboard("\n".join(command for command, _ in self._commands))
        self._copied = True
        self.redraw()

    def action_agree(self) -> None:
        cpu = self._choices[self.cursor]
        self.dismiss(None)
        self._measure(cpu)
