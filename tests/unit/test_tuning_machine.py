"""Tunables of the machine, of services and of what is only reported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.status import Assessment
from jitter_workshop.tuning import planning
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.setting_types.kinds import kind_of
from jitter_workshop.tuning.tunables.registry import find_tunable
from jitter_workshop.tuning.writer import HostWriter
from tests import hosttrees

Trees = Callable[[str], Path]


def assess(name: str, root: Path, hot: tuple[int, ...] = (1,)) -> Assessment:
    return find_tunable(name).assess(Host(HostRoot(root), CpuSet(hot)))


def test_a_guest_names_the_settings_of_its_owner(host_tree: Trees) -> None:
    for name in ("hypervisor", "steal", "pcie-aspm"):
        told = assess(name, host_tree("guest"))
        if name != "pcie-aspm":
            assert told.only_host, name
            assert told.when == "host"
    assert assess("hypervisor", host_tree("guest")).value == "KVM"
    assert assess("hypervisor", host_tree("server64")).state == "ok"


def test_steal_counts_only_the_hot_cpus(tmp_path: Path) -> None:
    hosttrees.guest(tmp_path)
    rows = hosttrees.stat([0, 1], steal=0).replace("cpu0 600 0 400 9000 0 0 0 0", "cpu0 600 0 400 8900 0 0 0 100")
    hosttrees.write(tmp_path, {"proc/stat": rows})
    assert assess("steal", tmp_path, (1,)).state == "ok"
    stolen = assess("steal", tmp_path, (0,))
    assert (stolen.state, stolen.value) == ("info", "1 % of the hot CPUs' time since boot")


def test_a_limit_that_stopped_the_group_is_told_apart_from_one_that_did_not(host_tree: Trees) -> None:
    told = assess("cpu-max", host_tree("guest"))
    assert (told.state, told.value) == ("improve", "1.5 CPUs, stopped 7 times")
    assert "CPU limit" in told.fix
    assert assess("cpu-max", host_tree("server64"), (40,)).value == "4 CPUs, stopped 3 times"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Not affected", "0 mitigated, 0 not, 1 do not apply"),
        ("Mitigation: PTI", "1 mitigated, 0 not, 0 do not apply"),
        ("KVM: Mitigation: VMX disabled", "1 mitigated, 0 not, 0 do not apply"),
        ("Vulnerable: Clear CPU buffers attempted, no microcode", "0 mitigated, 1 not, 0 do not apply"),
        ("Processor vulnerable", "0 mitigated, 1 not, 0 do not apply"),
        ("Unknown: Dependent on hypervisor status", "0 mitigated, 0 not, 0 do not apply, 1 unknown"),
        ("", "0 mitigated, 0 not, 0 do not apply, 1 unknown"),
    ],
)
def test_flaws(tmp_path: Path, text: str, value: str) -> None:
    hosttrees.write(tmp_path, {f"{hosttrees.CPU}/vulnerabilities/mds": f"{text}\n"})
    told = assess("mitigations", tmp_path)
    assert told.value == value
    assert told.reason == ("active: mds" if value.startswith("1") else "no mitigation is active")


def test_shares_of_the_cache(tmp_path: Path) -> None:
    assert assess("resctrl", tmp_path).reason == "this kernel or processor has no resctrl"
    (tmp_path / "sys/fs/resctrl").mkdir(parents=True)
    assert assess("resctrl", tmp_path).reason == "not mounted"
    files = {"schemata": "L3:0=7ff\n", "cpus_list": "0-7\n", "info/L3/cbm_mask": "7ff", "mon_data/x": ""}
    files |= {"hot/schemata": "L3:0=700\n", "hot/cpus_list": "6-7\n"}
    hosttrees.write(tmp_path, {f"sys/fs/resctrl/{name}": text for name, text in files.items()})
    told = assess("resctrl", tmp_path, (7,))
    assert (told.value, told.reason) == ("2 groups, L3", "hot CPUs are in the group hot")
    assert "share the cache" in assess("resctrl", tmp_path, (5,)).reason


@pytest.mark.parametrize(
    ("types", "state", "value"),
    [((), "ok", "none"), (("identity",), "ok", "identity"), (("identity", "DMA-FQ"), "info", "DMA-FQ, identity")],
)
def test_iommu(tmp_path: Path, types: tuple[str, ...], state: str, value: str) -> None:
    hosttrees.write(tmp_path, {f"sys/kernel/iommu_groups/{n}/type": f"{kind}\n" for n, kind in enumerate(types)})
    (tmp_path / "sys/kernel").mkdir(parents=True, exist_ok=True)
    told = assess("iommu", tmp_path)
    assert (told.state, told.value) == (state, value)


def test_sockets_that_poll(tmp_path: Path) -> None:
    assert assess("napi", tmp_path).state == "unavailable"
    hosttrees.write(tmp_path, {"proc/sys/net/core/busy_poll": "0\n"})
    assert assess("napi", tmp_path).value == "sockets sleep"
    hosttrees.write(tmp_path, {"proc/sys/net/core/busy_read": "50\n"})
    assert assess("napi", tmp_path).value == "sockets poll 50 µs"


def test_battery_and_flavour(host_tree: Trees) -> None:
    assert assess("mains", host_tree("hybrid_laptop")).state == "improve"
    assert assess("mains", host_tree("server64")).state == "info"
    assert assess("kernel-flavour", host_tree("hybrid_laptop")).state == "ok"
    assert assess("kernel-flavour", host_tree("server64")).state == "info"


def test_hot_cpus_on_two_nodes(host_tree: Trees) -> None:
    assert assess("memory-nodes", host_tree("server64"), (1, 2)).state == "ok"
    apart = assess("memory-nodes", host_tree("server64"), (1, 20))
    assert (apart.state, apart.wanted) == ("improve", "one node")


def test_limits_of_a_recorded_host_are_nobodys(host_tree: Trees) -> None:
    told = assess("locked-memory", host_tree("server64"))
    assert told.state == "unavailable"
    assert "recorded" in told.reason


def test_protections_are_reported_and_never_changed(tmp_path: Path) -> None:
    hosttrees.small(tmp_path, 2)
    folder = f"{hosttrees.CPU}/vulnerabilities"
    hosttrees.write(
        tmp_path,
        {
            f"{folder}/meltdown": "Mitigation: PTI\n",
            f"{folder}/mds": "Vulnerable\n",
            f"{folder}/l1tf": "Not affected\n",
            "proc/sys/kernel/randomize_va_space": "2\n",
            "proc/sys/kernel/split_lock_mitigate": "1\n",
        },
    )
    assert assess("mitigations", tmp_path).value == "1 mitigated, 1 not, 1 do not apply"
    assert assess("aslr", tmp_path).value == "on"
    assert assess("split-lock", tmp_path).value == "on"
    for name in ("mitigations", "aslr", "split-lock", "audit", "cpu-max", "hypervisor", "services"):
        assert not find_tunable(name).changes_host
        assert not planning.plan_changes(Host(HostRoot(tmp_path), CpuSet((1,))), [Wanted(name)]).changes


def with_services(root: Path, *names: str, init: str = "systemd", active: tuple[str, ...] = ()) -> Path:
    hosttrees.small(root, 2)
    files = {"proc/1/comm": f"{init}\n"}
    for tid, name in enumerate(names, start=300):
        files |= hosttrees.task(tid, name)
    hosttrees.write(root, files)
    if init == "systemd":
        units = root / "run/systemd/units"
        units.mkdir(parents=True)
        (root / "run/systemd/system").mkdir()
        for unit in active:
            (units / f"invocation:{unit}").symlink_to("0" * 32)
    return root


def test_tuners_are_stopped_where_systemd_runs_the_host(tmp_path: Path) -> None:
    root = with_services(tmp_path, "tuned", "irqbalance", active=("tuned.service", "irqbalance.service", "tlp.service"))
    told = assess("competing-tuners", root)
    assert (told.state, told.value) == ("improve", "tuned, tlp")
    assert told.fix == "jitter-workshop apply competing-tuners"
    found = planning.plan_changes(Host(HostRoot(root), CpuSet((1,))), [Wanted("competing-tuners")]).changes
    assert [(c.path, c.before, c.after, c.kind) for c in found] == [
        ("systemd(tuned.service)", "active", "inactive", "unit")
    ]


def test_elsewhere_the_command_is_told(tmp_path: Path) -> None:
    root = with_services(tmp_path, "tuned", "dockerd", init="runit")
    told = assess("competing-tuners", root)
    assert told.fix == "sv stop tuned"
    skipped = planning.plan_changes(Host(HostRoot(root), CpuSet((1,))), [Wanted("competing-tuners")]).skipped
    assert "sv stop tuned" in skipped[0].reason
    assert "sv stop docker" in assess("services", root).reason


def test_only_the_process_is_left_to_name(tmp_path: Path) -> None:
    root = with_services(tmp_path, "dockerd", init="own-init")
    assert "kill 300" in assess("services", root).reason


class Programs(HostWriter):
    """Notes what would be run."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.ran: list[tuple[str, ...]] = []

    def run(self, program: str, arguments: tuple[str, ...]) -> None:
        self.ran.append((program, *arguments))


def test_a_unit_is_read_by_files_and_written_by_systemctl(tmp_path: Path) -> None:
    root = with_services(tmp_path, active=("tuned.service",))
    kind, writer = kind_of("unit"), Programs(root)
    assert kind.read(HostRoot(root), "systemd(tuned.service)").text == "active"
    assert kind.read(HostRoot(root), "systemd(thermald.service)").text == "inactive"
    kind.write(writer, "systemd(tuned.service)", "inactive")
    kind.write(writer, "systemd(tuned.service)", "active")
    assert writer.ran == [
        ("/usr/bin/systemctl", "--no-ask-password", "stop", "--", "tuned.service"),
        ("/usr/bin/systemctl", "--no-ask-password", "start", "--", "tuned.service"),
    ]


@pytest.mark.parametrize(
    "path", ["systemd()", "systemd(-h)", "systemd(a b)", "systemd(a;b)", "tuned.service", "systemd(../x)"]
)
def test_names_that_are_no_units(tmp_path: Path, path: str) -> None:
    writer = Programs(tmp_path)
    with pytest.raises(OSError, match="not the name of a unit"):
        kind_of("unit").write(writer, path, "inactive")
    with pytest.raises(OSError, match="active or inactive"):
        kind_of("unit").write(writer, "systemd(tuned.service)", "restart")
    assert not writer.ran


@pytest.mark.parametrize(
    ("ticks", "state", "value"),
    [
        (0, "info", "0"),
        (1, "info", "0.001 %"),
        (9, "info", "0.009 %"),
        (10, "info", "0.01 %"),
        (20, "info", "0.02 %"),
    ],
)
def test_a_tick_stolen_at_boot_is_not_held_against_a_host_for_ever(
    tmp_path: Path, ticks: int, state: str, value: str
) -> None:
    hosttrees.guest(tmp_path)
    rows = "".join(f"cpu{n} 600 0 400 {99_000 - ticks} 0 0 0 {ticks} 0 0\n" for n in (0, 1))
    hosttrees.write(tmp_path, {"proc/stat": f"cpu  1200 0 800 198000 0 0 0 0 0 0\n{rows}"})
    told = assess("steal", tmp_path, (0,))
    assert (told.state, str(told.value).startswith(value), told.only_host) == (state, True, True)
    if 0 < ticks < 10:
        assert "less than 0.01 % since boot" in told.reason
    elif ticks:
        assert "nothing in this guest changes that" in told.reason
        assert "ask the hypervisor's owner" in told.fix


@pytest.mark.parametrize("name", ["irqbalance", "competing-tuners", "services", "smt", "iommu"])
def test_where_nothing_can_be_read_nothing_is_said_to_be_good(tmp_path: Path, name: str) -> None:
    hosttrees.write(tmp_path, {f"{hosttrees.CPU}/online": "0-1\n", f"{hosttrees.CPU}/possible": "0-1\n"})
    told = assess(name, tmp_path)
    assert told.state == "unavailable", told
    assert told.reason


@pytest.mark.parametrize("name", ["irqbalance", "competing-tuners", "services"])
def test_where_processes_are_seen_none_of_these_is_good(tmp_path: Path, name: str) -> None:
    assert assess(name, with_services(tmp_path, "bash", init="init")).state == "ok"
