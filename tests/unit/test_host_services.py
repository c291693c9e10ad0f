"""Services that rewrite settings or take time: by their tasks, by systemd's links, and never a kernel thread."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.services import KNOWN, SERVICE_TASKS, active_units, read_services
from jitter_workshop.host.tasks.listing import PF_KTHREAD, each_process
from tests.hosttrees import task, write


def tasks() -> dict[str, str]:
    files = task(2, "irqbalance", flags=PF_KTHREAD) | task(700, "irqbalance") | task(702, "power-profiles-")
    files |= task(800, "dockerd") | task(810, "crond") | task(811, "cron") | task(900, "bash")
    return files | {"proc/1/comm": "init\n"}


def with_systemd(tmp_path: Path) -> HostRoot:
    units = ("tlp.service", "irqbalance.service", "ssh.service", "a-b.mount")
    files = tasks() | {f"run/systemd/units/invocation:{unit}": "" for unit in units}
    root = write(tmp_path, files | {"proc/1/comm": "systemd\n"})
    (root / "run/systemd/system").mkdir()
    return HostRoot(root)


def test_by_their_tasks(tmp_path: Path) -> None:
    services = read_services(HostRoot(write(tmp_path, tasks())))
    assert [(s.name, s.pids, s.unit_active) for s in services.tuners] == [
        ("irqbalance", (700,), None),
        ("power-profiles-daemon", (702,), None),
    ]
    assert [(s.name, s.pids) for s in services.loads] == [("docker", (800,)), ("cron", (810, 811))]
    assert (services.systemd, services.init) == (False, "init")
    assert services.find("irqbalance") is services.running[0]
    assert services.find("tuned") is None


def test_by_their_units_where_systemd_runs_the_host(tmp_path: Path) -> None:
    root = with_systemd(tmp_path)
    services = read_services(root)
    assert services.systemd
    assert [(s.name, s.pids, s.unit_active) for s in services.tuners] == [
        ("irqbalance", (700,), True),
        ("power-profiles-daemon", (702,), False),
        ("tlp", (), True),
    ]
    assert active_units(root) == {"tlp.service", "irqbalance.service", "ssh.service", "a-b.mount"}


def test_a_left_over_folder_is_not_systemd(tmp_path: Path) -> None:
    root = with_systemd(tmp_path)
    write(tmp_path, {"proc/1/comm": "tini\n"})
    services = read_services(root)
    assert not services.systemd
    assert services.find("tlp") is None


def test_one_pass_over_the_tasks_can_be_shared(tmp_path: Path) -> None:
    root = HostRoot(write(tmp_path, tasks()))
    assert read_services(root, tuple(each_process(root))) == read_services(root)
    assert read_services(root, ()).running == ()


def test_names_are_cut_as_the_kernel_cuts_them() -> None:
    assert "power-profiles-" in SERVICE_TASKS
    assert all(len(name) <= 15 for name in SERVICE_TASKS)
    assert len({s.name for s in KNOWN}) == len(KNOWN)
    kinds = [s.kind for s in KNOWN]
    assert kinds == sorted(kinds, reverse=True), "tuners come first"


@given(st.binary(max_size=200))
def test_damaged_tasks(data: bytes) -> None:
    class Damaged(HostRoot):
        def list_dir(self, path: str) -> tuple[str, ...]:
            return ("1", "22") if path == "/proc" else ()

        def _bytes(self, path: str, limit: int, *, whole: bool) -> tuple[bytes | None, str]:
            return data, ""

    assert read_services(Damaged()).loads == ()


def test_this_machine() -> None:
    services = read_services(HostRoot())
    assert services.init == Path("/proc/1/comm").read_text().strip()
