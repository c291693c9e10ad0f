"""Read status and plan of a made host of 512 CPUs, and choose among them: what matters comes first and is in sight."""

from __future__ import annotations

from pathlib import Path

import pytest

from jitter_workshop.cli import main
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.presenter.host.plan import EVERY_WRITE
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.host.cpus import CpuPicker
from jitter_workshop.tui.widgets.cpu_map import CpuMap
from tests import hosttrees
from tests.fakes import open_workshop
from tests.screens import settled, text_of


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hosttrees.big(tmp_path_factory.mktemp("big"), 512, 400)


def test_status_and_plan_begin_with_the_most_important_lines(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for columns in (80, 160):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert main(["status", "--root", str(tree)]) == 1
        status = capsys.readouterr().out.split("\n")
        assert max(map(len, status)) <= columns
        assert len(status) < 300
        head = " ".join(" ".join(status[:14]).split())
        assert "(16 CPUs)" in head
        assert "(480 CPUs)" in head
        assert "share cores with hot CPUs" in head
        assert "can be better: governor, min-frequency, idle-states, smt, irq-affinity," in head
        assert not any(line.count(",") > 20 for line in status if "irqaffinity=" not in line)
        assert main(["plan", "--root", str(tree)]) == 0
        plan = capsys.readouterr().out.split("\n")
        assert max(map(len, plan)) <= columns
        every = plan.index(EVERY_WRITE)
        short, whole = plan[:every], plan[every:]
        assert "(16 CPUs)" in " ".join(short[:3])
        assert "keeps other work off them" in " ".join(" ".join(short[:8]).split())
        assert len(short) < 300 < len(whole), len(short)
        assert not any("ffffffff,ffffffff" in line for line in short)
        assert any("ffffffff,ffffffff" in line for line in whole)
        assert "CPUs 0-511 → CPUs 0-" in " ".join(" ".join(short).split())
        assert any("more writes of this setting" in line for line in short)
        numbers = [int(line.split()[0]) for line in whole if line[:4].strip().isdigit() and line[4:6] == "  "]
        assert numbers == list(range(1, int(plan[0].split()[0].replace(",", "")) + 1))


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_the_picker_keeps_the_cursor_and_its_description_in_sight(tree: Path, size: tuple[int, int]) -> None:
    workshop = open_workshop()
    topology = read_topology(HostRoot(tree))
    app = WorkshopApp(workshop)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        app.push_screen(CpuPicker(workshop.walk("pinning"), topology))
        await settled(pilot)
        for _ in range(20):
            await pilot.press("down")
        await settled(pilot)
        seen = text_of(app).splitlines()
        cursor = app.screen.query_one(CpuMap).cursor
        assert any(f" {cursor}· " in line for line in seen)
        (told,) = [line for line in seen if f"CPU {cursor} · core" in line]
        assert f"node {topology.cpu(cursor).node}" in told  # type: ignore[union-attr]
        assert any("Enter accepts" in line for line in seen)
        groups = [line for line in seen if " L3 " in line and "node" in line and "KiB" not in line]
        if size == (160, 48):
            assert len(groups) == 32
            assert all(str(n) in " ".join(groups) for n in range(512))
