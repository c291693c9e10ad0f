"""Settings line by line on a made host, where a real agent writes: applied, measured, restored, kept."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.commands import workshop as command
from jitter_workshop.errors import HostError
from jitter_workshop.flow.chapters.by_hand import NO_THREAD_YET
from jitter_workshop.flow.chapters.chapter_host import AT_NEXT_BOOT
from jitter_workshop.flow.chapters.guess import WITHOUT_CHANGE
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.model.change import ApplyResult
from jitter_workshop.plain.walkthrough import PlainWalk
from jitter_workshop.presenter.host.by_hand import not_for_hand
from jitter_workshop.presenter.host.changes import (
    NOTHING_APPLIED,
    NOTHING_OF_CHAPTER,
    OTHERS_MAY_MEASURE,
    RESTORE_OTHERS,
)
from jitter_workshop.tuning.applying import NOT_SHOWN
from jitter_workshop.tuning.journal import AppliedBy
from tests import livehost, tuned_tree
from tests.fake_agent_connection import NO_RIGHTS, FakeAgentConnection
from tests.fakes import FakeWorkshop
from tests.functional.test_plain_walk import quad
from tests.talking import talk

THP = "sys/kernel/mm/transparent_hugepage/enabled"
INTERVAL = "proc/sys/vm/stat_interval"
BOOT_ID = "proc/sys/kernel/random/boot_id"
APPLIED = "1|||||"
"""Chapter 1 of the path and Enter until its plan is applied: look, no guess, measure, on, apply."""


@pytest.fixture
def live(tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWorkshop]:
    """The workshop on a made host, with the real agent session and a real agent behind it."""
    workshop = livehost.open_live(tree, course, monkeypatch)
    livehost.give_agent(workshop, tree, monkeypatch)
    yield workshop
    workshop.close()


def in_a_line(said: str) -> str:
    return " ".join(said.split())


# -- here, with an agent ----------------------------------------------------------------------------------------------


def test_a_chapter_is_applied_measured_and_given_back_on_leaving(live: FakeWorkshop, tree: Path) -> None:
    before = tuned_tree.contents(tree)
    said = talk(live, "1||2|||||||||q|")
    flat = in_a_line(said)
    assert "✗" not in said.split("measure")[0]
    assert "Enter see the plan · b back" in flat
    assert "Enter apply 2 writes · hand" in flat
    assert "Applying." in said
    assert re.search(r"Applied and read back: 2 settings, \d+ writes\.", flat)
    assert "now has the wanted values" in flat
    assert "before you leave the workshop, type restore" in said
    assert "To be measured: 'after pages', ring, quick." in flat
    assert live.measured == 2
    assert "'Pages' is done (setting verified, curve measured)." in flat
    assert "APPLIED NOW: 2 settings, 2 writes" in flat
    assert "(thp=madvise, stat-interval=10). The old values are restored when" in flat
    assert "are still applied. Enter restores the old values" in flat
    assert "keep leaves the changes applied" in flat
    given_back = re.search(r"Restored: 2 settings, \d+ writes \((.+?)\)\.", flat)
    assert given_back is not None
    assert sorted(given_back[1].split(", ")) == ["stat-interval", "thp"]
    assert tuned_tree.contents(tree) == before
    assert (tree / tuned_tree.STATE).is_dir()


def test_the_end_of_the_input_gives_back(live: FakeWorkshop, tree: Path) -> None:
    before = tuned_tree.contents(tree)
    said = talk(live, APPLIED)
    assert "Applied and read back: " in said
    assert "Restored: " in said
    assert "Applied now: " not in said
    assert tuned_tree.contents(tree) == before


def test_keeping_leaves_it_and_says_how_it_is_given_back(live: FakeWorkshop, tree: Path) -> None:
    said = talk(live, APPLIED + "|q|perhaps|keep")
    assert "Unknown answer 'perhaps'" in said
    assert "Restored" not in said
    assert "Still applied: 2 settings, 2 writes" in in_a_line(said)
    assert "(thp=madvise, stat-interval=10). 'jitter-workshop restore' restores" in in_a_line(said)
    assert "[madvise]" in (tree / THP).read_text()
    live.close()
    assert "[madvise]" in (tree / THP).read_text()
    assert [one["id"] for one in live.context.standing()] == ["thp", "stat-interval"]


@pytest.mark.parametrize("leaves", [KeyboardInterrupt, SystemExit])
def test_settings_restored_after_a_signal_are_told(
    live: FakeWorkshop,
    tree: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    leaves: type[BaseException],
) -> None:
    before = tuned_tree.contents(tree)
    answers = iter(APPLIED.split("|"))

    def typed() -> str:
        try:
            return next(answers)
        except StopIteration:
            assert tuned_tree.contents(tree) != before
            raise leaves from None

    monkeypatch.setattr("builtins.input", typed)
    monkeypatch.setattr(command, "_is_terminal", lambda stream: True)
    monkeypatch.setattr(Workshop, "open", lambda *given: live)
    given = argparse.Namespace(session=None, course=None, root=Path("/"), plain=True, chapter=None)
    with pytest.raises(leaves):
        command.run(given)
    assert re.search(r" > \nRestored: 2 settings, 2 writes \(.*\)\.\n$", capsys.readouterr().out)
    assert tuned_tree.contents(tree) == before


def test_restore_in_the_chapter_and_on_the_path(live: FakeWorkshop, tree: Path) -> None:
    before = tuned_tree.contents(tree)
    said = talk(live, APPLIED + "|b|restore|restore||p|restore|restore|q")
    flat = in_a_line(said)
    assert "Enter look again · restore · b back" in flat
    assert flat.count("Restored: ") == 2
    assert NOTHING_OF_CHAPTER in flat
    assert flat.count("Applied and read back: 2 settings") == 2
    assert "No setting of this host" in flat
    assert "Applied now: " not in flat
    assert tuned_tree.contents(tree) == before
    assert live.context.session.stack == ()


def test_the_earlier_word_undo_still_restores_and_help_does_not_show_it(live: FakeWorkshop) -> None:
    said = in_a_line(talk(live, APPLIED + "|undo|?|p|undo|?|q"))
    assert "Restored: 2 settings, 2 writes" in said
    assert NOTHING_APPLIED in said
    assert "undo" not in said


@pytest.mark.parametrize(("answer", "restored"), [("", True), ("no", False)])
@pytest.mark.parametrize("goes", ["", "p|"])
def test_settings_of_another_workshop_are_restored_only_if_the_learner_agrees(
    live: FakeWorkshop, tree: Path, monkeypatch: pytest.MonkeyPatch, goes: str, answer: str, restored: bool
) -> None:
    theirs = {"thp": AppliedBy("a", "2026-01-02T03:04:05Z", 4242, running=True)}
    monkeypatch.setattr(live, "of_others", lambda: theirs)
    said = in_a_line(talk(live, f"{APPLIED}|{goes}restore|{answer}|q|keep"))
    _, asked = said.split(f"{OTHERS_MAY_MEASURE} {RESTORE_OTHERS}")
    assert ("Restored: 2 settings, 2 writes" in asked) is restored
    assert ("Nothing was restored." in asked) is not restored
    assert ("[madvise]" in (tree / THP).read_text()) is not restored


def test_a_write_that_the_host_refuses_is_told(live: FakeWorkshop, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    livehost.give_agent(live, tree, monkeypatch, f"refuse=/{THP}")
    said = in_a_line(talk(live, APPLIED + "|q|"))
    assert re.search(rf"! Refused: /{THP}: .*(EIO|Input/output error)", said)
    assert "1 refused. Some settings can still be" in said
    assert "Restored: 1 setting, 1 write (stat-interval)." in said


def test_a_foreign_value_is_left_alone_and_told(live: FakeWorkshop, tree: Path) -> None:
    talked: list[str] = []

    def read(prompt: str) -> str:
        talked.append(prompt)
        if "keep leaves" in prompt:
            (tree / INTERVAL).write_text("7\n")
            return ""
        return (APPLIED + "|q").split("|")[len(talked) - 1]

    said: list[str] = []
    assert PlainWalk(live, read, said.append, 80).run() == 0
    flat = in_a_line("".join(said))
    assert re.search(rf"Left alone: /{INTERVAL}: .* \(the value is now 7\)", flat)
    assert "Restored: " in flat
    assert "Still applied: 1 setting, 1 write (stat-interval=10)." in flat
    assert (tree / INTERVAL).read_text() == "7\n"


def test_a_session_applies_its_earlier_changes_again(
    live: FakeWorkshop, tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tuned_tree.contents(tree)
    talk(live, APPLIED + "|q|")
    live.close()
    later = livehost.open_live(tree, course, monkeypatch)
    livehost.give_agent(later, tree, monkeypatch)
    said = in_a_line(talk(later, "again|n|again||again|q|"))
    assert "but not applied now: thp=madvise, stat-interval=10." in said
    assert "Type 'again' to see" in said
    assert said.count(f"/{THP}") == 2
    assert "Nothing was written." in said
    assert said.count("(stat-interval, thp). The old values are restored when") == 1
    assert "APPLIED NOW: 2 settings, 2 writes" in said
    assert "(thp=madvise, stat-interval=10). The old values are restored when" in said
    assert "has no earlier changes to apply again" in said
    assert "Restored: " in said
    later.close()
    assert tuned_tree.contents(tree) == before


def test_applied_again_without_the_tasks_that_ended(
    live: FakeWorkshop, tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(live, APPLIED + "|q|")
    live.close()
    later = livehost.open_live(tree, course, monkeypatch)
    agent_connection = later.context.agent_connection = FakeAgentConnection(tree)
    agent_connection.ended = 6
    said = in_a_line(talk(later, "again||q"))
    assert "6 writes were not needed: " in said
    assert "ended. The old values are restored" in said


def test_a_death_of_the_agent_is_a_sentence(live: FakeWorkshop, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    livehost.give_agent(live, tree, monkeypatch, "kill=0")
    said = in_a_line(talk(live, APPLIED + "|q"))
    assert "! the agent ended with signal 9" in said
    assert "Enter measure" in said.rpartition("The plan as a script")[2]


# -- here, without rights, and after a reboot -------------------------------------------------------------------------


def test_without_rights_there_is_a_script_and_the_chapter_goes_on(
    tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tuned_tree.contents(tree)
    workshop = livehost.open_live(tree, course, monkeypatch)
    workshop.context.agent_connection = FakeAgentConnection()
    said = talk(workshop, APPLIED + "||||||q")
    flat = in_a_line(said)
    assert flat.count(f"! {NO_RIGHTS.sentence()}.") == 1
    assert "\n  $ jitter-workshop plan --sh thp stat-interval > plan.sh\n" in said
    assert "'Pages' is done (setting not verified, curve" in flat
    assert "Applied now: " not in said
    assert tuned_tree.contents(tree) == before


def test_applying_again_without_rights_has_the_same_way_out(
    live: FakeWorkshop, tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(live, APPLIED + "|q|")
    live.close()
    later = livehost.open_live(tree, course, monkeypatch)
    later.context.agent_connection = FakeAgentConnection()
    assert "  $ jitter-workshop plan --sh thp=madvise stat-interval=10 > plan.sh\n" in talk(later, "again||q")


def test_a_reboot_is_waited_for_and_its_effect_told(tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workshop = livehost.open_live(tree, course, monkeypatch)
    workshop.context.agent_connection = FakeAgentConnection(tree, needs_reboot=True)
    said = in_a_line(talk(workshop, APPLIED + "|q"))
    assert AT_NEXT_BOOT in said
    assert "Leave with q, reboot, and start" in said
    assert "on without a reboot · restore" in said
    assert "Type restore for" not in said
    workshop.close()
    (tree / BOOT_ID).write_text("11111111-2222-3333-4444-555555555555\n")
    later = livehost.open_live(tree, course, monkeypatch)
    said = in_a_line(talk(later, "||q"))
    assert "NEXT: Pages · apply" in said
    assert "This host was rebooted:" in said
    assert "the written boot parameters are in effect." in said
    assert "There was nothing to write." in said
    assert "To be measured: 'after pages'" in said


def test_going_on_without_the_reboot(tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workshop = livehost.open_live(tree, course, monkeypatch)
    agent_connection = workshop.context.agent_connection = FakeAgentConnection(tree, needs_reboot=True)
    assert "To be measured: 'after pages'" in talk(workshop, APPLIED + "||q")
    assert [call[0] for call in agent_connection.calls] == ["apply", "keep", "close"]


def test_a_connection_that_broke_is_not_called_given_back(
    tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop = livehost.open_live(tree, course, monkeypatch)
    applies = FakeAgentConnection.apply

    def breaks(self: FakeAgentConnection, *arguments: Any) -> ApplyResult:
        result = applies(self, *arguments)
        self.fail = HostError("the agent does not answer")
        return result

    monkeypatch.setattr(FakeAgentConnection, "apply", breaks)
    monkeypatch.setattr(workshop.context, "standing", lambda: ({"id": "thp", "value": ""},))
    said = in_a_line(talk(workshop, APPLIED + "|q|keep"))
    assert "! the agent does not answer." in said
    assert "Restored" not in said
    assert "! Not everything is restored: the agent" in said
    assert "does not answer. Run 'jitter-workshop restore'." in said


def test_a_lease_that_ran_out_is_not_asked_about(live: FakeWorkshop, tree: Path) -> None:
    before = tuned_tree.contents(tree)
    answers = iter([*APPLIED.split("|"), "q"])
    said: list[str] = []

    def read(prompt: str) -> str:
        answer = next(answers)
        if answer == "q":
            assert live.context.agent_connection._agent is not None
            assert live.context.agent_connection._agent.restore().restored  # as the agent does by itself
        return answer

    assert PlainWalk(live, read, said.append, 80).run() == 0
    assert tuned_tree.contents(tree) == before
    flat = in_a_line("".join(said))
    assert "changes had been restored already." in flat
    assert "Applied now: " not in flat
    assert "Not everything is restored" not in flat


def test_words_typed_at_a_choice(live: FakeWorkshop) -> None:
    said = in_a_line(talk(live, "2||x|2|2|q"))
    assert "The answers are 1 to 2." in said
    assert "✗ You said: Nobody. The answer is: The counters" in said
    assert "Look at stat_interval." in said
    assert "Your guess so far: Nobody." in said
    assert "BY HAND $ vmstat 1 5" in said


@pytest.mark.parametrize("rights", ["root", "sudo", "none"])
def test_the_effect_of_enter_is_said_before_it(
    live: FakeWorkshop, tree: Path, rights: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tuned_tree.contents(tree)
    monkeypatch.setattr("jitter_workshop.flow.host_ops.agent_connection.rights", lambda: rights)
    said = in_a_line(talk(live, APPLIED[:-1] + "|q"))
    assert tuned_tree.contents(tree) == before
    assert ("sudo is not available, so nothing" in said) == (rights == "none")
    assert ("jitter-workshop plan --sh thp stat-interval" in said) == (rights == "none")
    assert ("(sudo may ask for your password first)" in said) == (rights == "sudo")
    assert ("Enter skip change" in said) == (rights == "none")
    assert "NOT APPLIED" not in said


def test_without_rights_enter_goes_on_and_tries_nothing(live: FakeWorkshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jitter_workshop.flow.host_ops.agent_connection.rights", lambda: "none")
    said = in_a_line(talk(live, APPLIED + "|q"))
    assert "Applying." not in said
    assert "To be measured: 'after pages (not set)'" in said


def test_a_guess_is_not_judged_without_the_change(tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lesson = course / "01-pages" / "lesson.toml"
    before, _, rest = lesson.read_text().partition("\n[prediction]\n")
    _, _, marked = (course / "03-clock" / "lesson.toml").read_text().partition("\n[prediction]\n")
    asked = marked.partition("\n[[by_hand]]")[0].partition("\n[[check]]")[0]
    assert "\n[[by_hand]]" not in rest
    lesson.write_text(f"{before}\n[prediction]\n{asked}")
    workshop = livehost.open_live(tree, course, monkeypatch)
    livehost.give_agent(workshop, tree, monkeypatch)
    monkeypatch.setattr("jitter_workshop.flow.host_ops.agent_connection.rights", lambda: "none")
    said = in_a_line(talk(workshop, "1||2ms|||||||||q"))
    assert "To be measured: 'after pages (not set)'" in said
    assert WITHOUT_CHANGE in said
    assert "apply✓" not in said
    workshop.close()


# -- what is agreed to is what was shown ------------------------------------------------------------------------------


class Typed:
    """Answers one after another; before the one with a number of ``then`` something happens."""

    def __init__(self, answers: str, then: dict[int, Callable[[], object]]) -> None:
        self.prompts: list[str] = []
        self._answers = answers.split("|")
        self._then = then

    def __call__(self, prompt: str) -> str:
        number = len(self.prompts)
        self.prompts.append(prompt)
        if number in self._then:
            self._then[number]()
        return self._answers[number]


def test_other_cpus_are_shown_before_enter_agrees_to_them() -> None:
    workshop = quad()
    said = talk(workshop, "|||||cpus 3,2||q", "pinning")
    after = said.partition("cpus auto")[2]
    assert "sched_setaffinity(producer)  any (0-3) → CPU 3" in after
    assert "The plan has changed" not in said
    walk = workshop.walk("pinning")
    assert walk.current == "again"
    assert (walk.measuring.request("again").producer_cpu, walk.measuring.request("again").accumulator_cpu) == (3, 2)


def test_a_placement_cannot_be_typed_and_the_answer_says_why() -> None:
    workshop = quad()
    said = " ".join(talk(workshop, "|||||hand|q", "pinning").split())
    assert not_for_hand(NO_THREAD_YET) in said
    assert "Unknown command" not in said
    assert workshop.walk("pinning").current == "apply"


@pytest.mark.parametrize("word", ["", "again"])
def test_nothing_agrees_to_a_placement_that_was_not_shown(word: str) -> None:
    """``word``: Enter, and the number of the step ``again``."""
    workshop = quad()
    steps = [one.name for one in workshop.walk("pinning").steps() if one.state != "left_out"]
    number = str(steps.index("again") + 1) if word else ""
    said: list[str] = []
    typed = Typed(f"|||||{number}|q", {5: lambda: workshop.walk("pinning").cpus.choose(3, 2, None)})
    assert PlainWalk(workshop, typed, said.append, 80).run("pinning") == 0
    assert "The plan has changed" in in_a_line("".join(said))
    assert "sched_setaffinity(producer)  any (0-3) → CPU 3" in "".join(said)
    assert workshop.walk("pinning").current == "apply"


def test_a_write_that_changed_since_it_was_shown_is_not_made(live: FakeWorkshop, tree: Path) -> None:
    said: list[str] = []
    typed = Typed(APPLIED + "|q|", {5: lambda: (tree / INTERVAL).write_text("7\n")})
    assert PlainWalk(live, typed, said.append, 80).run() == 0
    flat = in_a_line("".join(said))
    assert "Enter apply 2 writes" in flat
    assert typed.prompts[5].endswith("quit > ")
    assert f"! Refused: /{INTERVAL}: {NOT_SHOWN}" in flat
    assert "Restored: 1 setting, 1 write (thp)." in flat
    assert (tree / INTERVAL).read_text() == "7\n"
