"""Test that tests see neither the home of the user who runs them, nor a class of this machine."""

from __future__ import annotations

from pathlib import Path

from jitter_workshop import paths
from jitter_workshop.classroom import client
from jitter_workshop.flow.turns.classhost import class_host


def test_no_test_sees_the_class_of_the_machine_it_runs_on(tmp_path: Path) -> None:
    for place in (paths.CLASS_FILE, paths.RUN_DIR, paths.BOARD_DIR, client.SOCKET, str(paths.state_dir())):
        assert place.startswith(f"{tmp_path}/")
        assert not Path(place).exists()
    assert class_host() is None
