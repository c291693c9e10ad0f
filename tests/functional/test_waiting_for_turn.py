"""Somebody else measures on this host: the screen and the plain walk queue, say behind whom, and can stop waiting."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.lock import TURN_VARIABLE
from jitter_workshop.errors import BusyError
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.measuring.measure import measure_run
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.model.run import Progress, RunStarted
from jitter_workshop.plain.walkthrough import PlainWalk
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.widgets.keybar import KeyBar
from tests.holding import turn_held
from tests.screens import settled, text_of

pytestmark = pytest.mark.host

PATIENCE_S = 20.0


class Silent:
    """An observer that shows nothing."""

    def started(self, event: RunStarted) -> None:
        return None

    def block_done(self, progress: Progress) -> None:
        return None


@pytest.fixture
def holder(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    monkeypatch.setenv(TURN_VARIABLE, f"jitter-workshop.test.{os.getpid()}.{request.node.name}")
    with turn_held() as process:
        yield process


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
async def test_the_screen_waits_calmly_and_stops_waiting_on_request(holder: subprocess.Popen[str], key: str) -> None:
    workshop = Workshop.open()
    app = WorkshopApp(workshop, "baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("m")
        limit = time.monotonic() + PATIENCE_S
        while "Waiting: " not in text_of(app):
            assert time.monotonic() < limit, text_of(app)
            await asyncio.sleep(0.01)
            await pilot.pause()
        said = " ".join(text_of(app).split())
        assert f"is measuring (uid {os.getuid()}, pid {holder.pid}, python" in said
        assert "Esc stops waiting." in said
        assert app.screen.query_one(KeyBar).shown == (("chapter.home", "stop waiting"),)
        await pilot.press(key)
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        assert not app.measuring
        assert "Stopped waiting. Nothing was measured." in " ".join(text_of(app).split())
    assert app.exit_code == 0
    assert workshop.context.runs.every() == ()


def test_the_plain_walk_waits_and_ctrl_c_stops_the_waiting_only(holder: subprocess.Popen[str]) -> None:
    said: list[str] = []
    answers = iter(["3", "", "q"])

    def write(text: str) -> None:
        said.append(text)
        if "Waiting: " in text:
            signal.raise_signal(signal.SIGINT)

    workshop = Workshop.open()
    assert PlainWalk(workshop, lambda _: next(answers), write, 80).run("baseline") == 0
    text = "".join(said)
    assert f"pid {holder.pid}" in text
    assert "Ctrl-C stops waiting." in text.replace("\n  ", " ")
    assert "Stopped waiting. Nothing was measured." in text
    assert "--wait" not in text
    assert workshop.context.runs.every() == ()


def test_the_run_begins_when_the_turn_comes_and_says_so(holder: subprocess.Popen[str]) -> None:
    told: list[str] = []

    def queued(sentence: str) -> None:
        told.append(sentence)
        holder.kill()

    request = MeasureRequest(workload="spin", duration_s=0.1, wait_s=PATIENCE_S)
    run = Workshop.open().measure(request, Silent(), CancelToken(), queued)
    assert run.complete
    assert told[0].startswith("Waiting: ")
    assert told[-1] == ""


def test_a_busy_workshop_names_no_option_of_a_verb(holder: subprocess.Popen[str]) -> None:
    with pytest.raises(BusyError) as caught:
        Workshop.open().measure(MeasureRequest(), Silent(), CancelToken())
    assert "is measuring" in caught.value.message
    assert caught.value.advice == "try again when that run has ended"


def test_a_holder_of_the_turn_measures_although_the_shared_name_is_taken(holder: subprocess.Popen[str]) -> None:
    request = MeasureRequest(workload="spin", duration_s=0.1)
    with pytest.raises(BusyError):
        measure_run(request, None, Silent(), CancelToken())
    assert measure_run(request, None, Silent(), CancelToken(), turn_held=True).complete
    assert holder.poll() is None
