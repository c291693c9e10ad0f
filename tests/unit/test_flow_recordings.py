"""Test the project's own recordings of the lab machine, read like any recorded host."""

from __future__ import annotations

import io
import ipaddress
import json
import re
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jitter_workshop.cli import main
from jitter_workshop.flow.host_ops.host_status import HostStatus, draw_up, read_checks
from jitter_workshop.host.recording.packed import unpacked
from jitter_workshop.host.recording.recording_filter import HIDDEN_NAME
from jitter_workshop.presenter.host import plan as plan_view
from jitter_workshop.presenter.host import status
from jitter_workshop.presenter.text.lines import written
from jitter_workshop.report import plan_script
from jitter_workshop.report.check_words import explain_check
from jitter_workshop.tuning.setting_types.kinds import kind_of
from jitter_workshop.tuning.tunables import registry
from jitter_workshop.tuning.tunables.registry import parse_wanted

RECORDINGS = Path(__file__).parents[2] / "assets" / "recordings"
NAMES = ("lab-stock", "lab-tuned", "lab-boot", "lab-rt")
TUNED = (
    "governor", "min-frequency", "idle-states", "isolation", "workqueue-mask", "kernel-threads", "watchdogs",
    "mce-interval", "stat-interval", "thp", "compaction",
)  # fmt: skip
"""The effects of the changes at run time on the lab machine."""
BOOTED = ("isolcpus", "nohz-full", "rcu-nocbs", "irqaffinity")
Look = Callable[[str], HostStatus]


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> Look:
    cache = tmp_path_factory.mktemp("recordings")
    seen: dict[str, HostStatus] = {}

    def at(name: str) -> HostStatus:
        if name not in seen:
            seen[name] = read_checks(unpacked(RECORDINGS / f"{name}.tar.xz", cache), [], None)
        return seen[name]

    return at


def states(checkup: HostStatus) -> dict[str, str]:
    return {one.id: one.state for one in checkup.checks}


@pytest.mark.parametrize("name", NAMES)
def test_every_recording_is_whole_and_describes_itself(looked: Look, name: str) -> None:
    checkup = looked(name)
    assert checkup.host.root.recording is not None
    assert "lab machine" in json.loads(checkup.host.root.text("RECORDING.json") or "")["note"]
    assert checkup.host.root.recording.not_permitted == frozenset()
    # Two of them were isolated when they were recorded.
    assert checkup.hot.cpus.cpus == ((1, 2) if name in ("lab-tuned", "lab-boot") else (2, 3))


def test_applied_settings_are_told_apart_from_others(looked: Look) -> None:
    stock, tuned = states(looked("lab-stock")), states(looked("lab-tuned"))
    assert {name: stock[name] for name in TUNED} == dict.fromkeys(TUNED, "improve")
    assert {name: tuned[name] for name in TUNED} == dict.fromkeys(TUNED, "ok")
    assert {name: stock[name] for name in BOOTED} == dict.fromkeys(BOOTED, "improve")
    assert looked("lab-tuned").summary["improve"] < looked("lab-stock").summary["improve"]


def test_boot_parameters_of_a_recording_are_in_effect(looked: Look) -> None:
    boot = states(looked("lab-boot"))
    assert {name: boot[name] for name in BOOTED} == dict.fromkeys(BOOTED, "ok")
    assert boot["isolation"] == "ok"
    assert boot["governor"] == "improve", "no boot parameter of these is about the clock"


def test_a_real_time_kernel_is_known(looked: Look) -> None:
    flavours = {name: states(looked(name))["kernel-flavour"] for name in NAMES}
    assert flavours == {"lab-stock": "info", "lab-tuned": "info", "lab-boot": "info", "lab-rt": "ok"}
    assert looked("lab-rt").summarise().realtime_kernel
    assert not looked("lab-stock").summarise().realtime_kernel


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("lab-stock", "the workshop would place its threads there"),
        ("lab-tuned", "isolated from the scheduler by a control group"),
        ("lab-boot", "isolated from the scheduler by isolcpus"),
        ("lab-rt", "the workshop would place its threads there"),
    ],
)
def test_why_these_cpus_are_hot(looked: Look, name: str, why: str) -> None:
    assert why in looked(name).hot.why


# Every reading verb --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_check_of_each_can_be_explained(looked: Look, name: str) -> None:
    checkup = looked(name)
    assert [one.id for one in checkup.checks] == [one.id for one in registry.tunables()]
    for tunable, check in zip(checkup.tunables, checkup.checks, strict=True):
        text = written(status.check_page(check, explain_check(tunable, check, checkup.host), True, 80))
        assert tunable.id in text, tunable.id
        assert all(line.isprintable() for line in text.split("\n")), tunable.id


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_of_each_is_drawn_and_told(looked: Look, name: str) -> None:
    drawn = draw_up(looked(name).host.root.root)
    planned = {change.tunable for change in drawn.plan.changes}
    improvable = {one.id for one in looked(name).checks if one.state == "improve"}
    assert planned <= improvable
    assert ("governor" in planned) is (name != "lab-tuned")
    script = plan_script.script_of_plan(drawn.plan, "lab", "today")
    for change in drawn.plan.changes:
        assert change.before != change.after or kind_of(change.kind).always, change
        task = re.fullmatch(r"\w+\((\d+)@(\d+)\)", change.path)
        assert (f" {task[1]} {task[2]} " if task else change.path) in script, change
    assert plan_view.of_host(drawn.plan, 80, drawn.hot.why, True)


@pytest.mark.parametrize("words", [["status"], ["status", "--json"], ["status", "--explain", "governor"], ["plan"]])
def test_the_command_line_takes_the_file_as_it_is(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--root", str(RECORDINGS / "lab-stock.tar.xz")]) in (0, 1)
    out, err = capsys.readouterr()
    assert "governor" in out
    assert err == ""


def test_the_commands_by_hand_name_the_paths_of_the_host(capsys: pytest.CaptureFixture[str]) -> None:
    """A path of this tool's copy of the recording would show nothing on the recorded host."""
    assert main(["status", "--explain", "governor", "--root", str(RECORDINGS / "lab-stock.tar.xz")]) == 1
    _, by_hand = capsys.readouterr().out.split("by hand   on the host itself")
    assert "cat /sys/devices/system/cpu/cpufreq/policy2/scaling_governor" in by_hand
    assert "recordings" not in by_hand


# Things not to be in them ---------------------------------------------------------------------------------------------

MAC = re.compile(r"(?<![0-9a-f:])[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}(?![0-9a-f:])", re.IGNORECASE)
IPV4 = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])")
IPV6_LIKE = re.compile(r"(?<![0-9a-z:])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?![0-9a-z:])", re.IGNORECASE)
USER = re.compile(r"/home/|/Users/|(?<![\w-])user@(?!removed|\d+\.)|/root/|/tmp/")
OUR_MAC = re.compile(r"02(?::00){4}:[0-9a-f]{2}")
"""The stand-ins that a recording has for addresses."""


def is_ipv6(text: str) -> bool:
    """Return True if it is a whole address; ``0::`` begins each line of a cgroup of version 2."""
    try:
        return text != "0::" and bool(ipaddress.IPv6Address(text))
    except ValueError:
        return False


def members(name: str) -> Iterator[tuple[str, str]]:
    """Path and contents of each file in an archive, packed ones unpacked."""
    with tarfile.open(RECORDINGS / f"{name}.tar.xz") as archive:
        for one in archive:
            assert one.isdir() or one.isreg(), one.name
            file = archive.extractfile(one) if one.isreg() else None
            yield one.name, "" if file is None else file.read().decode("utf-8", "replace")


@pytest.mark.parametrize("name", NAMES)
def test_nothing_private_is_in_them(name: str) -> None:
    seen = dict(members(name))
    assert len(seen) > 300
    for path, text in seen.items():
        for what in (path, text):
            assert [found for found in MAC.findall(what) if not OUR_MAC.fullmatch(found)] == [], path
            assert [found for found in IPV6_LIKE.findall(OUR_MAC.sub("", what)) if is_ipv6(found)] == [], path
            assert USER.search(what) is None, path
            if not path.endswith(("osrelease", "version", "uevent")):
                assert IPV4.findall(what) == [], path
        assert not path.endswith(("/cmdline", "/environ", "/maps")) or path.endswith("proc/cmdline"), path
    names = {text.strip() for path, text in seen.items() if path.endswith("kernel/hostname")}
    assert names == {HIDDEN_NAME}
    about = json.load(io.StringIO(next(text for path, text in seen.items() if path.endswith("RECORDING.json"))))
    assert set(about) == {
        "format_version", "tool_version", "recorded_at", "kernel", "cpus", "note", "not_permitted", "read_only",
    }  # fmt: skip


def test_the_files_in_recordings_have_no_owner_but_root() -> None:
    for name in NAMES:
        with tarfile.open(RECORDINGS / f"{name}.tar.xz") as archive:
            owners = {(one.uid, one.gid, one.uname, one.gname) for one in archive}
        assert all(uid == gid == 0 and {user, group} <= {"", "root"} for uid, gid, user, group in owners), owners


def test_on_two_cores_of_two_threads_one_core_is_hot_and_one_does_the_rest(looked: Look) -> None:
    """Issue: work must not go to the siblings of hot CPUs."""
    checkup = looked("lab-stock")
    assert (str(checkup.hot.cpus), str(checkup.host.housekeeping)) == ("2-3", "0-1")
    assert not checkup.host.topology.siblings_of(checkup.hot.cpus)
    drawn = draw_up(checkup.host.root.root, parse_wanted(("isolation", "workqueue-mask", "irq-affinity")))
    masks = {c.after for c in drawn.plan.changes if c.path.endswith("/cpumask")}
    assert masks == {"3"}
    (partition,) = [c.after for c in drawn.plan.changes if c.path.endswith("/cpuset.cpus")]
    assert partition == "2-3"
    assert {c.after for c in drawn.plan.changes if c.path.startswith("/proc/irq/")} <= {"0-1", "0", "1", "3"}


def test_where_the_only_other_cpu_is_a_sibling_status_says_so(looked: Look) -> None:
    checkup = looked("lab-tuned")
    assert str(checkup.host.housekeeping) == "0"
    assert "sibling of a hot CPU: tasks on CPU 0" in checkup.hot.note
