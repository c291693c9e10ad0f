"""What the project's own recordings of the lab machine say, read as any recorded host is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop.flow.checkup import Checkup, look
from jitter_workshop.host.packed import unpacked

RECORDINGS = Path(__file__).parents[2] / "assets" / "recordings"
Look = Callable[[str], Checkup]


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> Look:
    cache = tmp_path_factory.mktemp("recordings")
    seen: dict[str, Checkup] = {}

    def at(name: str) -> Checkup:
        if name not in seen:
            seen[name] = look(unpacked(RECORDINGS / f"{name}.tar.xz", cache), [], None)
        return seen[name]

    return at


def states(checkup: Checkup) -> dict[str, str]:
    return {one.id: one.state for one in checkup.checks}


@pytest.mark.parametrize("name", ["lab-stock", "lab-tuned", "lab-boot", "lab-rt"])
def test_every_recording_is_whole_and_says_what_it_is(looked: Look, name: str) -> None:
    checkup = looked(name)
    assert checkup.host.root.recording is not None
    assert "lab machine" in checkup.host.root.recording.note
    assert checkup.host.root.recording.not_permitted == frozenset()
    assert checkup.hot.cpus.cpus == (1, 2)
