"""A verb loads only what it needs. (That rooms import one way only is a contract, which lint checks.)"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HEAVY = {
    "textual",
    "rich",
    "rich.console",
    "plotext",
    "pyperf",
    "psutil",
    "hdrh",
    "cffi",
    "PIL",
    "jitter_workshop.bench._native",
}
REPOSITORY = Path(__file__).parents[2]


def loaded_by(code: str, tmp_path: Path) -> set[str]:
    """Modules in a fresh interpreter after ``code``."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, json\n{code}\nsys.stderr.write(json.dumps(sorted(sys.modules)))"],
        env=os.environ | dict.fromkeys(("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), str(tmp_path)),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return set(json.loads(done.stderr))


@pytest.mark.parametrize("words", [["--help"], ["sessions"], ["lessons", "list"], ["measure", "--help"], []])
def test_a_light_verb_loads_nothing_heavy(words: list[str], tmp_path: Path) -> None:
    loaded = loaded_by(f"from jitter_workshop.cli import main\nmain({words!r})", tmp_path)
    assert "jitter_workshop.cli" in loaded
    assert not HEAVY & loaded


NEEDLESS: dict[tuple[str, ...], set[str]] = {
    ("--help",): {"pathlib", "difflib", "dataclasses", "json", "subprocess", "jitter_workshop.model.codec"},
    ("status",): {
        "numpy",
        "hashlib",
        "difflib",
        "dataclasses",
        "subprocess",
        "platform",
        "shutil",
        "locale",
        "jitter_workshop.session",
        "jitter_workshop.model.run",
        "jitter_workshop.model.course",
        "jitter_workshop.presenter.text.prose",
        "jitter_workshop.tuning.planning",
        "jitter_workshop.tuning.writer",
        "heapq",
        "jitter_workshop.host.boot.grub",
        "jitter_workshop.tuning.switched",
        "jitter_workshop.tuning.setting_types.cgroup",
    },
    ("sessions",): {"hashlib", "secrets", "difflib", "subprocess", "jitter_workshop.bench.runner"},
}
"""Verb → modules that it does not need and that take milliseconds to load."""


@pytest.mark.parametrize("words", list(NEEDLESS))
def test_a_verb_loads_nothing_needless(
    words: tuple[str, ...], tmp_path: Path, host_tree: Callable[[str], Path]
) -> None:
    bare = loaded_by("pass", tmp_path)
    # On this machine another workshop may hold a change, whose owner status looks up.
    asked = [*words, "--root", str(host_tree("guest"))] if words == ("status",) else [*words]
    loaded = loaded_by(f"from jitter_workshop.cli import main\nmain({asked!r})", tmp_path)
    assert not (HEAVY | NEEDLESS[words]) & loaded - bare


def test_status_of_the_live_host_loads_nothing_for_recorded_ones(tmp_path: Path) -> None:
    bare = loaded_by("pass", tmp_path)
    # Another workshop may hold a change on this machine, or a class may use it.
    code = """
from jitter_workshop import paths
from jitter_workshop.cli import main
from jitter_workshop.tuning import journal
paths.CLASS_FILE = "/nowhere"
journal.active = lambda root: ()
main(["status"])
"""
    assert not {"pathlib", "ctypes", "urllib.parse", "ipaddress"} & loaded_by(code, tmp_path) - bare


ENDS = """
import atexit, os, sys, threading
from jitter_workshop import cli
sys.argv = ["jitter-workshop", "--help"]
end = os._exit
def at_once(code):
    os.write(1, b"at once")
    end(code)
os._exit = at_once
"""


@pytest.mark.parametrize(
    ("more", "quick"),
    [
        ("", True),
        ("atexit.register(print, 'last')", False),
        ("threading.Thread(target=lambda: threading.Event().wait(0.2)).start()", False),
    ],
)
def test_the_process_ends_at_once_only_if_nothing_is_left_to_do(more: str, quick: bool, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"{ENDS}\n{more}\ncli.run()"],
        env=os.environ | dict.fromkeys(("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), str(tmp_path)),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.startswith("usage: jitter-workshop")
    assert done.stdout.endswith("at once") is quick
    assert ("last" in done.stdout.splitlines()) is ("atexit" in more)


@pytest.mark.parametrize("verb", ["--help", "status", "sessions"])
def test_a_short_verb_runs_no_garbage_collector(verb: str, tmp_path: Path) -> None:
    code = f"""
import gc
from jitter_workshop.cli import main
passes = sum(one["collections"] for one in gc.get_stats())
sys.argv = ["jitter-workshop", {verb!r}]
main()
passes = sum(one["collections"] for one in gc.get_stats()) - passes
sys.modules |= {{f"passes={{passes}}": sys, f"frozen={{gc.get_freeze_count() > 0}}": sys}}
"""
    assert {"passes=0", "frozen=True"} <= loaded_by(code, tmp_path)


NOT_IN_THE_FIRST_FRAME = {
    *("plotext", "hdrh", "PIL", "cffi", "statistics", "secrets", "importlib.metadata", "subprocess"),
    *("hashlib", "tomllib", "zipfile", "importlib.resources", "presenter.text.pictures", "tui.screens.common.dialogs"),
    *("evidence", "bench.runner", "bench.noiseorder", "course.lesson", "report", "report.pictures", "chart.canvas"),
    *("flow.attribution", "flow.measuring.measure", "flow.measuring.curves", "flow.classes", "flow.reporting"),
    *("flow.chapters.walk", "flow.chapters.hunt", "flow.chapters.recorded", "flow.chapters.chapter_host"),
    *("presenter.course.chapter", "presenter.runs.run", "presenter.runs.comparison", "presenter.runs.curves"),
    "stats.comparison",
    *("tui.screens.chapter", "tui.screens.runs", "tui.screens.host", "tui.web", "plain"),
}
"""The modules that the screen loads only when something is opened or measured; ours without the package's name."""


def test_the_first_frame_loads_nothing_needless(tmp_path: Path) -> None:
    keep = "from jitter_workshop.flow.chapters.workshop import Workshop\nWorkshop.open().close()"
    loaded_by(keep, tmp_path)
    # The chart is the first thing that is made behind the first frame.
    code = """
import os
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.home.home import HomeScreen

def painted(self):
    os.write(2, json.dumps(sorted(sys.modules)).encode())
    os._exit(0)

HomeScreen._draw_chart = painted
WorkshopApp(Workshop.open()).run(headless=True)
"""
    loaded = loaded_by(code, tmp_path)
    assert "jitter_workshop.tui.screens.home.home" in loaded
    bare = loaded_by("import textual.app, textual.drivers.linux_driver, textual.drivers.headless_driver", tmp_path)
    ours = {name.removeprefix("jitter_workshop.") for name in loaded - bare}
    assert not NOT_IN_THE_FIRST_FRAME & ours


def test_the_core_runs_without_the_screen(tmp_path: Path) -> None:
    loaded = loaded_by(
        "import jitter_workshop.flow.chapters.workshop, jitter_workshop.flow.measuring.measure", tmp_path
    )
    assert not {"textual", "rich", "plotext", "jitter_workshop.bench._native"} & loaded


def test_the_parent_never_loads_native_code(tmp_path: Path) -> None:
    loaded = loaded_by("import jitter_workshop.bench.runner, jitter_workshop.commands.measure", tmp_path)
    assert "jitter_workshop.bench._native" not in loaded
