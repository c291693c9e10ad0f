"""The whole course line by line at a terminal in the guest, by a learner who only presses Enter. Runs are cut to half
a second: latencies in an emulator mean nothing, and what is walked is the way."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from jitter_workshop.course.loader import load_course
from tests.lab.console import Console
from tests.lab.machine import PROJECT, Machine
from tests.lab.test_lab_boot import settings

pytestmark = [pytest.mark.lab, pytest.mark.soak]

COURSE = "/home/short"
STATE = {"XDG_STATE_HOME": "/home/walked"}
# A run that takes seven seconds on a machine takes a minute or two in here.
PATIENCE_S = 300.0
MOST_ENTERS = 25


def shortened(project: str, target: str) -> list[str]:
    """(In the guest) the built-in course with runs of half a second; the chapters' ids in order."""
    import os
    import re

    os.makedirs(target)
    ids = []
    for name in sorted(os.listdir(f"{project}/lessons")):
        source = f"{project}/lessons/{name}"
        if name == "course.toml":
            with open(source) as file, open(f"{target}/{name}", "w") as copy:
                copy.write(file.read())
        if not os.path.exists(f"{source}/lesson.toml"):
            continue
        os.mkdir(f"{target}/{name}")
        for part in ("lesson.toml", "lesson.md"):
            with open(f"{source}/{part}") as file:
                text = file.read()
            if part == "lesson.toml":
                ids.append(re.search('^id = "(.*)"', text, re.M).group(1))
                text = re.sub("(?m)^duration_s = .*\n", "", text)
                text = text.replace("[[measurement]]\n", "[[measurement]]\nduration_s = 0.5\n")
            with open(f"{target}/{name}/{part}", "w") as copy:
                copy.write(text)
    return ids


def walked(console: Console, number: int) -> str:
    """Open a chapter by its number and press Enter until its end; all that was said."""
    said = console.answer(str(number))
    for _ in range(MOST_ENTERS):
        new = console.answer("", PATIENCE_S)
        said += new
        if re.search(r"^'.*' is done", new, re.M):
            return said
        assert console.code is None, said
    pytest.fail(f"{MOST_ENTERS} times Enter do not lead through chapter {number}:\n{said[-3000:]}")


def test_enter_leads_through_every_chapter_and_all_is_given_back(lab_factory: Callable[..., Machine]) -> None:
    # In an emulator on a busy host the TSC's watchdog sees delays that are none.
    machine = lab_factory(append="tsc=nowatchdog", disk=True)
    machine.call(settings)
    ids = machine.call(shortened, PROJECT, COURSE)
    assert ids == [chapter.id for chapter in load_course().chapters]
    with machine.unchanged():
        argv = [machine.python, "-m", "jitter_workshop", "--plain", "--course", COURSE]
        console = Console(machine, argv, STATE)
        assert "times mean nothing" in " ".join(console.heard().split())
        done = {ident: walked(console, number) for number, ident in enumerate(ids, start=1) if ident != "tick"}
        for ident, said in done.items():
            # Chapters for which this guest lacks something use a recording; all others are verified and measured here.
            if "on a recording." not in said:
                assert "not verified" not in said, (ident, said[-2000:])
                assert "not measured" not in said, (ident, said[-2000:])
        held = " ".join(console.answer("status").split())
        assert "governor" in held
        leaving = console.answer("q")
        assert "Enter restores the old values ·" in leaving
        assert "Restored: " in console.answer("", PATIENCE_S)
        assert console.code == 0
