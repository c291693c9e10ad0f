"""Boot parameters: judged by what runs, staged by the host's own means, taken away again."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.errors import UsageError
from jitter_workshop.host.boot.cmdline import parse_command_line
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.shellfile import parse_assignments
from jitter_workshop.model.change import Plan, Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning import planning
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.setting_types import system
from jitter_workshop.tuning.setting_types.kinds import kind_of
from jitter_workshop.tuning.tunables.registry import find_tunable, tunables
from jitter_workshop.tuning.writer import HostWriter
from tests import hosttrees

DROPINS = "/etc/default/grub.d"
DEFAULTS = ("isolcpus", "nohz-full", "rcu-nocbs", "irqaffinity", "skew-tick")
BOOT = [t.id for t in tunables() if t.when == "boot"]

DEBIAN = {
    "etc/os-release": 'ID=debian\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
    "etc/default/grub": 'GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT="quiet"\nGRUB_CMDLINE_LINUX="console=ttyS0"\n',
    "etc/default/grub.d/README": "x\n",
    "usr/sbin/update-grub": "#!/bin/sh\n",
}
FEDORA = {
    "etc/os-release": "ID=fedora\n",
    "etc/default/grub": "GRUB_DEFAULT=saved\n",
    "usr/sbin/grubby": "#!/bin/sh\n",
    "boot/loader/entries/a-6.12.conf": "title Fedora\nlinux /vmlinuz\noptions root=UUID=1 ro quiet\n",
    "boot/loader/entries/a-rescue.conf": "title Rescue\noptions root=UUID=1 ro\n",
}


def host(root: Path, files: dict[str, str], *, line: str = "quiet", hot: tuple[int, ...] = (6, 7)) -> Host:
    """Eight CPUs of which 6 and 7 are hot, booted with ``line``."""
    hosttrees.small(root, 8)
    more = {
        "proc/cmdline": f"BOOT_IMAGE=/vmlinuz {line}\n",
        "proc/irq/default_smp_affinity": "ff\n",
        f"{hosttrees.CPU}/nohz_full": "(null)\n",
    }
    hosttrees.write(root, {**more, **files})
    return Host(HostRoot(root), CpuSet(hot))


def again(seen: Host) -> Host:
    return Host(HostRoot(seen.root.root), seen.hot)


def plan(seen: Host, *names: str) -> Plan:
    return planning.plan_changes(seen, [Wanted(*name.split("=", 1)) for name in names])


def do(seen: Host, made: Plan, undo: bool = False) -> None:
    writer = HostWriter(seen.root.root)
    for change in reversed(made.changes) if undo else made.changes:
        kind_of(change.kind).write(writer, change.path, change.before if undo else change.after)


def test_a_drop_in_of_its_own_for_each_parameter_and_one_update(tmp_path: Path) -> None:
    seen = host(tmp_path, DEBIAN)
    made = plan(seen, *DEFAULTS)
    assert {c.path.removeprefix(f"{DROPINS}/zz-jitter-workshop-"): c.after for c in made.changes} == {
        "isolcpus.cfg": "isolcpus=managed_irq,domain,6-7",
        "nohz-full.cfg": "nohz_full=6-7",
        "rcu-nocbs.cfg": "rcu_nocbs=6-7",
        "irqaffinity.cfg": "irqaffinity=0-5",
        "skew-tick.cfg": "skew_tick=1",
    }
    assert {(c.kind, c.when, c.before, c.then) for c in made.changes} == {("grub", "boot", "", "update-grub")}


def test_staged_waits_for_the_boot_is_not_written_twice_and_goes_away(tmp_path: Path) -> None:
    seen = host(tmp_path, DEBIAN)
    before = sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*"))
    made = plan(seen, *DEFAULTS)
    do(seen, made)
    told = find_tunable("isolcpus").assess(again(seen))
    assert (told.state, told.fix, told.value) == ("improve", "reboot", None)
    assert "'isolcpus=managed_irq,domain,6-7' takes effect at the next boot" in told.reason
    assert not plan(again(seen), *DEFAULTS).changes
    do(seen, made, undo=True)
    assert sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*")) == before
    assert find_tunable("isolcpus").assess(again(seen)).fix == "jitter-workshop apply isolcpus"


def test_after_the_boot_it_is_in_effect(tmp_path: Path) -> None:
    seen = host(
        tmp_path,
        {
            **DEBIAN,
            f"{hosttrees.CPU}/isolated": "6-7\n",
            f"{hosttrees.CPU}/nohz_full": "6-7\n",
        },
        line="isolcpus=managed_irq,domain,6-7 nohz_full=6-7 rcu_nocbs=6-7 irqaffinity=0-5 skew_tick=1",
    )
    for name in DEFAULTS:
        assert find_tunable(name).assess(seen).state == "ok", name
    assert not plan(seen, *DEFAULTS).changes


def test_a_tick_that_the_kernel_cannot_stop_is_not_taken_for_stopped(tmp_path: Path) -> None:
    dropped = host(tmp_path / "a", DEBIAN, line="nohz_full=6-7")
    told = find_tunable("nohz-full").assess(dropped)
    assert told.state == "improve"
    assert "ignored nohz_full=" in told.reason
    without = host(tmp_path / "b", DEBIAN, line="nohz_full=6-7")
    (tmp_path / "b" / hosttrees.CPU / "nohz_full").unlink()
    told = find_tunable("nohz-full").assess(without)
    assert told.state == "unavailable"
    assert "CONFIG_NO_HZ_FULL" in told.reason
    assert not plan(without, "nohz-full").changes


def test_isolcpus_that_the_kernel_dropped(tmp_path: Path) -> None:
    told = find_tunable("isolcpus").assess(host(tmp_path, DEBIAN, line="isolcpus=domain,6-"))
    assert told.state == "improve"
    assert "ignored isolcpus=" in told.reason


def test_rcu_nocbs_without_a_list_means_all(tmp_path: Path) -> None:
    assert (
        find_tunable("rcu-nocbs")
        .assess(host(tmp_path, {f"{hosttrees.CPU}/possible": "0-7\n"}, line="quiet rcu_nocbs"))
        .state
        == "ok"
    )


def test_nohz_full_does_the_work_of_rcu_nocbs(tmp_path: Path) -> None:
    seen = host(tmp_path, {**DEBIAN, f"{hosttrees.CPU}/nohz_full": "5-7\n"}, line="nohz_full=5-7")
    assert find_tunable("rcu-nocbs").assess(seen).reason == "nohz_full also moves the RCU callbacks to other CPUs"


def test_a_parameter_that_the_owner_wrote_is_left_to_the_owner(tmp_path: Path) -> None:
    own = {"etc/default/grub.d/50-cloud.cfg": 'GRUB_CMDLINE_LINUX_DEFAULT="$X isolcpus=2"\n'}
    made = plan(host(tmp_path, {**DEBIAN, **own}), "isolcpus")
    assert not made.changes
    assert "/etc/default/grub.d/50-cloud.cfg has 'isolcpus=2' already" in made.skipped[0].reason


def test_a_missing_folder_of_drop_ins_is_a_change_of_its_own(tmp_path: Path) -> None:
    files = {k: v for k, v in DEBIAN.items() if not k.endswith("README")}
    seen = host(tmp_path, files)
    made = plan(seen, "isolcpus", "skew-tick")
    assert (made.changes[0].path, made.changes[0].kind) == (DROPINS, "folder")
    assert len(made.changes) == 3
    do(seen, made)
    do(seen, made, undo=True)
    assert not (tmp_path / "etc/default/grub.d").exists()


class Grubby(HostWriter):
    """Hold what grubby does to boot entries, as its manual says."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.root = root
        self.ran: list[tuple[str, ...]] = []

    def run(self, program: str, arguments: tuple[str, ...]) -> None:
        self.ran.append((program, *arguments))
        options = dict(a.split("=", 1) for a in arguments)
        assert options["--update-kernel"] == "ALL"
        for entry in (self.root / "boot/loader/entries").glob("*.conf"):
            lines = entry.read_text().splitlines()
            for n, text in enumerate(lines):
                if text.startswith("options "):
                    gone = options["--remove-args"].split()
                    kept = [w for w in text.split() if w.partition("=")[0] not in gone]
                    lines[n] = " ".join([*kept, *options.get("--args", "").split()])
            entry.write_text("\n".join(lines) + "\n")


def test_grubby_is_told_exactly_and_read_back_by_files(tmp_path: Path) -> None:
    seen = host(tmp_path, FEDORA)
    entries = sorted((tmp_path / "boot/loader/entries").iterdir())
    before = [e.read_text() for e in entries]
    writer = Grubby(tmp_path)
    made = plan(seen, "isolcpus", "max-cstate=1")
    assert [(c.path, c.kind, c.before, c.then) for c in made.changes] == [
        ("grubby(isolcpus)", "grubby", "", ""),
        ("grubby(processor.max_cstate+intel_idle.max_cstate)", "grubby", "", ""),
    ]
    for c in made.changes:
        kind_of(c.kind).write(writer, c.path, c.after)
        assert kind_of(c.kind).read(seen.root, c.path).text == c.after
    assert writer.ran[0] == (
        "/usr/sbin/grubby",
        "--update-kernel=ALL",
        "--remove-args=isolcpus",
        "--args=isolcpus=managed_irq,domain,6-7",
    )
    assert not plan(again(seen), "isolcpus").changes
    assert "takes effect at the next boot" in find_tunable("isolcpus").assess(again(seen)).reason
    for c in reversed(made.changes):
        kind_of(c.kind).write(writer, c.path, c.before)
    assert [e.read_text() for e in entries] == before


def test_boot_entries_that_differ_are_not_touched(tmp_path: Path) -> None:
    other = {"boot/loader/entries/a-rescue.conf": "options isolcpus=1\n"}
    made = plan(host(tmp_path, {**FEDORA, **other}), "isolcpus")
    assert not made.changes
    assert "differ" in made.skipped[0].reason


def test_elsewhere_the_exact_parameters_are_told(tmp_path: Path) -> None:
    seen = host(tmp_path, {"boot/extlinux/extlinux.conf": "x\n"})
    told = find_tunable("isolcpus").assess(seen)
    assert told.state == "improve"
    assert "add 'isolcpus=managed_irq,domain,6-7'" in told.fix
    assert "extlinux.conf" in told.fix
    made = plan(seen, "isolcpus")
    assert not made.changes
    assert "add 'isolcpus=managed_irq,domain,6-7'" in made.skipped[0].reason


def test_without_a_housekeeping_cpu_nothing_is_isolated(tmp_path: Path) -> None:
    seen = host(tmp_path, DEBIAN, hot=tuple(range(8)))
    for name in ("isolcpus", "nohz-full", "rcu-nocbs", "irqaffinity"):
        assert find_tunable(name).assess(seen).state == "unavailable", name
        assert not plan(seen, name).changes


@pytest.mark.parametrize("name", BOOT)
def test_every_boot_parameter_is_staged_once_and_removed(tmp_path: Path, name: str) -> None:
    seen = host(tmp_path, DEBIAN)
    wanted = f"{name}=1" if name == "max-cstate" else name
    if name == "nosmt":
        hosttrees.write(tmp_path, {f"{hosttrees.CPU}/smt/active": "1\n", f"{hosttrees.CPU}/smt/control": "on\n"})
    made = plan(seen, wanted)
    assert len(made.changes) == 1, made.skipped
    assert made.changes[0].risk == find_tunable(name).risk
    do(seen, made)
    assert not plan(again(seen), wanted).changes
    words = made.changes[0].after.split()
    booted = host(tmp_path / "booted", DEBIAN, line=" ".join(words))
    given_now = find_tunable(name).assess(booted)
    assert given_now.value == made.changes[0].after or name == "nohz-full", given_now
    do(seen, made, undo=True)
    assert find_tunable(name).assess(again(seen)).state in ("improve", "info")


@pytest.mark.parametrize("wanted", ["tsc-reliable=never", "preempt=sometimes", "max-cstate=10", "max-cstate=$(id)"])
def test_values_that_make_no_sense(tmp_path: Path, wanted: str) -> None:
    with pytest.raises(UsageError):
        plan(host(tmp_path, DEBIAN), wanted)


@pytest.mark.parametrize(
    ("release", "lazy", "left"),
    [("6.18.1", "y", "all"), ("7.0.7", "n", "all"), ("7.0.7", "y", "new"), ("7.1.0", "y", "new")],
)
def test_modes_of_preemption_that_a_kernel_no_longer_has_are_refused(
    tmp_path: Path, release: str, lazy: str, left: str
) -> None:
    files = {
        "proc/sys/kernel/osrelease": f"{release}\n",
        "proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC\n",
        f"boot/config-{release}": f"CONFIG_ARCH_HAS_PREEMPT_LAZY={lazy}\n",
    }
    seen = host(tmp_path, {**DEBIAN, **files})
    taken = {mode for mode in ("none", "voluntary", "full", "lazy") if plan(seen, f"preempt={mode}").changes}
    assert taken == ({"full", "lazy"} if left == "new" else {"none", "voluntary", "full", "lazy"})


def test_the_longer_name_is_understood() -> None:
    assert find_tunable("boot:isolcpus") is find_tunable("isolcpus")
    with pytest.raises(UsageError):
        find_tunable("boot:governor")


PARAMETER = st.from_regex(r"[a-z0-9_.][a-zA-Z0-9_.=,:-]{0,30}", fullmatch=True)


@given(st.lists(PARAMETER, min_size=1, max_size=4))
def test_a_drop_in_has_the_written_words_and_a_shell_reads_it_so(words: list[str]) -> None:
    text = system.drop_in(" ".join(words))
    assert system.parse_drop_in(text) == " ".join(words)
    value = parse_assignments(text)["GRUB_CMDLINE_LINUX"]
    assert value == f"$GRUB_CMDLINE_LINUX {' '.join(words)}"
    assert [n for n, _ in parse_command_line(value)][1:] == [n for n, _ in parse_command_line(" ".join(words))]


@given(st.text(max_size=60))
def test_nothing_that_a_shell_could_take_for_more_reaches_a_file(text: str) -> None:
    try:
        written = system.drop_in(text)
    except OSError:
        return
    assert not set(text) & set("\"'$`\\;&|<>()\n\t*?~!{}#")
    assert written.count("\n") == 2


@given(st.text(max_size=200))
def test_a_file_that_was_changed_by_hand_is_never_taken_for_ours(text: str) -> None:
    found = system.parse_drop_in(text)
    assert found.startswith("(changed by hand)") or 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX ' in text


@pytest.mark.parametrize("path", ["grubby()", "grubby(a b)", "grubby(--args)", "isolcpus", "grubby(a;b)", "grubby(a+)"])
def test_names_that_are_no_parameters(tmp_path: Path, path: str) -> None:
    with pytest.raises(OSError, match="not names"):
        kind_of("grubby").write(HostWriter(tmp_path), path, "")
