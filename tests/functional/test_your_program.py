"""The chapter on the learner's program, by keys and line by line: real commands are observed, ended and proven."""

from __future__ import annotations

import dataclasses
import sys
import threading
import time
from pathlib import Path

import pytest
from textual.pilot import Pilot

from jitter_workshop.course.loader import builtin_course
from jitter_workshop.errors import HostError
from jitter_workshop.flow.chapters import own_program
from jitter_workshop.flow.chapters.own_program import SAMPLES
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.host_ops.hotcpus import HotCpus
from jitter_workshop.flow.programs import metrics, observing
from jitter_workshop.flow.proving import proof_plan
from jitter_workshop.flow.proving.command_meter import CommandRequest
from jitter_workshop.flow.proving.proof_plan import ProveRequest
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.presenter.course.path import progress_signs
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.screens.chapter.program import CommandPage
from jitter_workshop.tui.screens.home.home import HomeScreen
from jitter_workshop.tui.screens.proving import ProvingScreen
from tests import livehost
from tests.fakes import FakeWorkshop, open_workshop
from tests.screens import settled, text_of
from tests.talking import talk

ID = "your-program"
QUICK = f"{sys.executable} -c \"print('p99=7 us')\""


@pytest.fixture(autouse=True)
def _no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without the rights to trace."""

    def refuse(self: AgentConnection) -> None:
        raise HostError("tracing needs root's rights", "ask for them")

    monkeypatch.setattr(AgentConnection, "tracer", refuse)


def whole() -> FakeWorkshop:
    return open_workshop(course=builtin_course())


async def press(pilot: Pilot[None], *keys: str) -> str:
    """Press keys, wait for what they begin, and return what is seen as one line."""
    await pilot.press(*keys)
    await pilot.app.workers.wait_for_complete()
    await settled(pilot)
    return " ".join(text_of(pilot.app).split())


def chapter_of(app: WorkshopApp) -> ChapterScreen:
    assert isinstance(app.screen, ChapterScreen)
    return app.screen


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_a_command_of_ones_own_is_typed_observed_and_looked_at(size: tuple[int, int]) -> None:
    workshop = whole()
    app = WorkshopApp(workshop, ID)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        programs = "1–3 program"
        assert (programs in text_of(app).splitlines()[-1]) == (size[0] > 100), "a small screen shows the page first"
        said = await press(pilot, *([] if size[0] > 100 else ["enter"]), "2")
        assert programs in said
        walk = chapter_of(app).walk
        assert walk.program.work.words == SAMPLES[1].words
        await press(pilot, "slash", "'", "g", "enter")
        assert isinstance(app.screen, CommandPage), "in a command g is a letter"
        assert "close each quote" in " ".join(text_of(app).split())
        await press(pilot, "escape", "slash", *QUICK.replace("us'", "us [red]'"), "enter")
        assert walk.program.work.words[1:] == ("-c", "print('p99=7 us [red]')")
        while walk.current != "measure":
            await press(pilot, "enter")
        said = await press(pilot, "enter")
        assert "it said p99=7 us [red]" in said
        assert "tracing needs root's rights" in " ".join(chapter_of(app).sheet("#data-sheet").plain().split())
        entry = next(one for one in workshop.path() if one.chapter_id == ID)
        assert progress_signs(entry) == ("·", "✓", "·")
        while walk.current != "compare":
            await press(pilot, "enter")
        said = await press(pilot, "p")
        assert isinstance(app.screen, ProvingScreen)
        assert "10 rounds are 20 runs of the command" in said
        await press(pilot, "escape")
        for _ in range(6):
            if isinstance(app.screen, HomeScreen):
                break
            await press(pilot, "enter")
        assert isinstance(app.screen, HomeScreen)
        assert walk.progress.done


async def test_a_program_that_fails_or_is_stopped_gives_a_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    workshop = whole()
    walk = workshop.walk(ID)
    walk.program.choose(("/nowhere/at-all",))
    walk.go("measure")
    app = WorkshopApp(workshop, ID)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert "cannot be started: No such file or directory" in await press(pilot, "enter")
        walk.program.choose(("sh", "-c", f"touch {tmp_path}/began; sleep 60; touch {tmp_path}/ended"))
        await pilot.press("m")
        while not (tmp_path / "began").exists():
            await pilot.pause(0.01)
        assert "stop" in text_of(app).splitlines()[-1]
        assert "The program was ended" in await press(pilot, "p", "slash", "escape")
        assert chapter_of(app).walk.program.work.observed is None
        assert not (tmp_path / "ended").exists()


async def test_adding_up_is_left_at_once_and_nothing_of_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on, real = threading.Event(), observing._counted

    def long(*given: object) -> object:
        goes_on.wait(30)
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(observing, "_counted", long)
    workshop = whole()
    walk = workshop.walk(ID)
    walk.program.choose(("true",))
    walk.go("measure")
    app = WorkshopApp(workshop, ID)
    async with app.run_test(size=(132, 40)) as pilot:
        await settled(pilot)
        await pilot.press("m")
        for _ in range(1_000):
            await pilot.pause(0.01)
            if "Adding up" in text_of(app):
                break
        assert "Adding up" in text_of(app)
        await pilot.press("escape")
        await pilot.pause()
        assert "The program was ended" in " ".join(text_of(app).split())
        assert app.stop_run is None
        goes_on.set()
        await app.workers.wait_for_complete()
        await settled(pilot)
        assert chapter_of(app).walk.program.work.observed is None


async def test_enter_alone_goes_through_it() -> None:
    workshop = whole()
    workshop.walk(ID).program.choose(("true",))
    app = WorkshopApp(workshop, ID)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        walk = chapter_of(app).walk
        seen = []
        for _ in range(20):
            if not isinstance(app.screen, ChapterScreen):
                break
            seen += [walk.current] if not seen or seen[-1] != walk.current else []
            await press(pilot, "enter")
        assert tuple(seen) == walk.chapter.steps
        assert walk.progress.done


def test_line_by_line_it_is_observed_proven_and_made_to_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    livehost.proving_tree(tmp_path, monkeypatch)
    workshop = whole()
    said = talk(workshop, f"program 3|command {QUICK}||1|||change nothing|p||||q", ID)
    assert "▸ 3 convoy" in " ".join(said.split())
    assert "it said p99=7 us" in " ".join(said.split())
    assert "'nothing' is not among the changes: placement" in said
    assert "10 rounds" in said
    assert "MAKE IT LAST" in said
    entry = next(one for one in workshop.path() if one.chapter_id == ID)
    assert (entry.setting, entry.curve, entry.done) == (True, True, True)
    assert "(program observed, change proven)" in " ".join(said.split())
    (proof,) = workshop.context.handle.proofs()
    assert (proof.chapter, proof.subject, proof.metric) == (ID, "placement", "wall_time")


@pytest.mark.parametrize(("chapter", "verb"), [("", True), (ID, False)])
def test_advice_uses_the_words_of_the_place(chapter: str, verb: bool) -> None:
    command = CommandRequest(("true",), metrics.metric_of_options(None))
    request = ProveRequest(("thp",), chapter=chapter, command=command)
    root, cpus = HostRoot(), CpuSet((0,))
    said = proof_plan.command_measured(request, command, root, read_topology(root), cpus)[1]
    hot = HotCpus(cpus, "it is asked for", "asked", "CPU 0 is hot; --cpus 0-1 takes whole cores")
    said += " ".join(proof_plan._on_hot(request, hot))
    with pytest.raises(HostError) as refused:
        proof_plan.draw_up_proof(dataclasses.replace(request, words=("isolation",)), AgentConnection())
    said += refused.value.sentence()
    assert said.count("--cpus") == (3 if verb else 0)
    assert said.count("another change") == (0 if verb else 1)
    assert ("prove the change 'placement'" in said) != verb
    assert "CPU 0 is hot" in said


def test_a_program_that_does_not_end_is_ended_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_program, "OBSERVED_S", 1)
    workshop = whole()
    began = time.monotonic()
    said = talk(workshop, f"command sh -c 'sleep 60; touch {tmp_path}/ended'|||||q", ID)
    assert time.monotonic() - began < 30
    assert "counters only" in said
    assert "exit code" not in said
    seen = workshop.walk(ID).program.work.observed
    assert seen is not None
    assert seen.observed_ns > 0.9e9


def test_on_a_recorded_host_it_is_read(tmp_path: Path, host_tree: object) -> None:
    workshop = open_workshop(host_tree("guest"), course=builtin_course())  # type: ignore[operator]
    said = talk(workshop, "||m||||q", ID)
    assert "nothing runs on a recorded host" in said
    assert workshop.walk(ID).progress.marks == {}
