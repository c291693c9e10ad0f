"""Boot parameters for one boot: an entry of our own in GRUB's menu, chosen once, judged and taken away again."""

from __future__ import annotations

from pathlib import Path

import pytest

from jitter_workshop.errors import UsageError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Plan, Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning import planning
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.setting_types.kinds import kind_of
from jitter_workshop.tuning.status import find_drift
from jitter_workshop.tuning.tunables.registry import find_tunable, parse_wanted, set_for_one_boot, tunables
from jitter_workshop.tuning.writer import HostWriter
from tests import hosttrees, madegrub

CUSTOM = "boot/grub/custom.cfg"
GRUBENV = "boot/grub/grubenv"
ENTRY = "'Debian GNU/Linux': /boot/vmlinuz-6.1.0-2 root=UUID=1 ro console=ttyS0,115200 quiet"
BOOT = [t.id for t in tunables() if t.when == "boot"]


def host(root: Path) -> Host:
    return Host(HostRoot(root), CpuSet((6, 7)))


def plan(root: Path, *words: str) -> Plan:
    return planning.plan_changes(host(root), parse_wanted(words))


def do(root: Path, made: Plan, undo: bool = False) -> None:
    writer = HostWriter(root)
    for change in reversed(made.changes) if undo else made.changes:
        kind_of(change.kind).write(writer, change.path, change.before if undo else change.after)


def test_the_plan_names_the_files_and_the_cure_of_a_boot_that_hangs(tmp_path: Path) -> None:
    made = plan(madegrub.box(tmp_path), "once:nohz-full", "once:rcu-nocbs")
    assert [(c.tunable, c.path, c.before, c.after, c.when) for c in made.changes] == [
        ("nohz-full", "/boot/grub/custom.cfg", "", ENTRY, "boot"),
        ("nohz-full", "/boot/grub/custom.cfg(nohz_full)", "", "nohz_full=6-7", "boot"),
        ("rcu-nocbs", "/boot/grub/custom.cfg(rcu_nocbs)", "", "rcu_nocbs=6-7", "boot"),
        ("nohz-full", "/boot/grub/grubenv(next_entry)", "", "jitter-workshop-once", "boot"),
    ]
    assert "switch the machine off and on" in made.changes[3].why


def test_the_entry_is_the_default_one_with_more_and_all_goes_away(tmp_path: Path) -> None:
    madegrub.box(tmp_path, block=madegrub.block(saved_entry="1>1", other="kept"))
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    place = (tmp_path / GRUBENV).stat()
    made = plan(tmp_path, "once:nohz-full", "once:rcu-nocbs")
    do(tmp_path, made)
    text = (tmp_path / CUSTOM).read_text()
    assert (
        "linux\t/boot/vmlinuz-6.1.0-2 root=UUID=1 ro console=ttyS0,115200 quiet nohz_full=6-7 rcu_nocbs=6-7\n" in text
    )
    assert "$menuentry_id_option 'jitter-workshop-once' {" in text
    assert "savedefault" not in text
    assert "initrd\t/boot/initrd.img" in text
    env = (tmp_path / GRUBENV).read_text()
    assert "saved_entry=1>1\nother=kept\nnext_entry=jitter-workshop-once\n" in env
    now = (tmp_path / GRUBENV).stat()
    assert (now.st_ino, now.st_size, now.st_mode) == (place.st_ino, 1024, place.st_mode)
    assert (tmp_path / CUSTOM).stat().st_mode & 0o777 == 0o644
    assert not plan(tmp_path, "once:nohz-full", "once:rcu-nocbs").changes
    do(tmp_path, made, undo=True)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_status_tells_waiting_from_used(tmp_path: Path) -> None:
    madegrub.box(tmp_path)
    made = plan(tmp_path, "once:nohz-full", "once:rcu-nocbs")
    do(tmp_path, made)
    told = find_tunable("nohz-full").assess(host(tmp_path))
    assert (told.state, told.fix) == ("improve", "reboot")
    assert "'nohz_full=6-7' takes effect at the next boot only" in told.reason

    # GRUB has booted it: it forgot its choice, and the kernel has the parameters.
    booted = {
        GRUBENV: madegrub.block(next_entry=""),
        "proc/cmdline": "quiet nohz_full=6-7 rcu_nocbs=6-7\n",
        f"{hosttrees.CPU}/nohz_full": "6-7\n",
    }
    hosttrees.write(tmp_path, booted)
    told = find_tunable("nohz-full").assess(host(tmp_path))
    assert told.state == "ok"
    assert told.reason.endswith("; for this boot only")
    assert not plan(tmp_path, "once:nohz-full").changes
    keeping = plan(tmp_path, "nohz-full", "rcu-nocbs")
    assert [c.kind for c in keeping.changes] == ["grub", "grub"], keeping.skipped
    assert all(find_drift(host(tmp_path), find_tunable(c.tunable), [c]) is None for c in made.changes)

    # And the boot after that.
    hosttrees.write(tmp_path, {"proc/cmdline": "quiet\n", f"{hosttrees.CPU}/nohz_full": "(null)\n"})
    told = find_tunable("nohz-full").assess(host(tmp_path))
    assert (told.state, told.fix) == ("improve", "jitter-workshop apply nohz-full")
    assert told.reason.endswith("; its entry for one boot is not chosen for the next boot")
    again = plan(tmp_path, "once:nohz-full", "once:rcu-nocbs")
    assert [(c.path, c.after) for c in again.changes] == [("/boot/grub/grubenv(next_entry)", "jitter-workshop-once")]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"menu": madegrub.menu(custom="")}, "does not read /boot/grub/custom.cfg"),
        ({"menu": madegrub.menu().replace("save_env next_entry", "true")}, "does not look for an entry to boot once"),
        ({"menu": madegrub.menu("0", "blscfg\n")}, "blscfg"),
        ({"menu": madegrub.menu("$x")}, "computed"),
        ({"block": "nothing"}, "not an environment block"),
        ({"block": madegrub.block(next_entry="2")}, "'2' is already chosen"),
        ({"block": madegrub.block(env_block="512+1")}, "does not know"),
        ({"block": madegrub.block(prev_saved_entry="0")}, "does not know"),
        ({"mounts": madegrub.MOUNTS.replace("/ / rw,", "/ / ro,")}, "mounted read-only"),
        ({"mounts": madegrub.MOUNTS + f"30 21 {madegrub.DISK} /b /boot ro - ext4 /dev/vda1 rw\n"}, "mounted read-only"),
        ({"mounts": madegrub.MOUNTS.replace("vda1 rw", "vda1 rw,data=journal")}, "journals data"),
        ({"mounts": madegrub.MOUNTS.replace("ext4", "btrfs")}, "on a file system of the kind btrfs"),
        (
            {"mounts": madegrub.MOUNTS + "30 21 0:50 / /boot rw - zfs bpool/BOOT rw\n"},
            "on a file system of the kind zfs",
        ),
        ({"device": "dm-0"}, "only to a plain disk, not to dm-0"),
        ({"device": "md0p1"}, "only to a plain disk, not to md0p1"),
        ({"mounts": ""}, "the disk of /boot/grub is not"),
    ],
)
def test_where_it_is_not_offered_and_why(tmp_path: Path, more: dict[str, str], reason: str) -> None:
    made = plan(madegrub.box(tmp_path, **more), "once:nohz-full")
    assert not made.changes
    assert reason in made.skipped[0].reason
    assert plan(tmp_path, "nohz-full").changes, "the permanent way does not depend on it"


@pytest.mark.parametrize("text", ["", "menuentry 'mine' {\n}\n", "changed"])
def test_a_file_of_another_program_is_left_alone(tmp_path: Path, text: str) -> None:
    madegrub.box(tmp_path)
    if text == "changed":
        do(tmp_path, plan(tmp_path, "once:nohz-full"))
        text = (tmp_path / CUSTOM).read_text().replace("quiet", "quiet mine=1", 1)
        hosttrees.write(tmp_path, {GRUBENV: madegrub.block()})
    (tmp_path / CUSTOM).write_text(text)
    made = plan(tmp_path, "once:rcu-nocbs")
    assert not made.changes
    assert "not written by this tool" in made.skipped[0].reason
    for kind, path in (("grub-entry", f"/{CUSTOM}"), ("grub-once", f"/{CUSTOM}(rcu_nocbs)")):
        for value in ("", "rcu_nocbs=6-7"):
            with pytest.raises(OSError, match="not written by this tool"):
                kind_of(kind).write(HostWriter(tmp_path), path, value)
    assert (tmp_path / CUSTOM).read_text() == text


def test_a_parameter_of_the_default_entry_is_left_to_its_owner(tmp_path: Path) -> None:
    menu = madegrub.menu().replace("quiet", "quiet nohz-full=2")
    made = plan(madegrub.box(tmp_path, menu=menu), "once:nohz-full")
    assert "'nohz-full=2' already" in made.skipped[0].reason


def test_an_entry_is_chosen_only_while_it_is_there_and_removed_only_when_it_is_empty(tmp_path: Path) -> None:
    madegrub.box(tmp_path)
    writer = HostWriter(tmp_path)
    with pytest.raises(OSError, match="does not exist"):
        kind_of("grub-next").write(writer, f"/{GRUBENV}(next_entry)", "jitter-workshop-once")
    with pytest.raises(OSError, match="only our own"):
        kind_of("grub-next").write(writer, f"/{GRUBENV}(next_entry)", "0")
    do(tmp_path, plan(tmp_path, "once:nohz-full"))
    with pytest.raises(OSError, match="still adds nohz_full=6-7"):
        kind_of("grub-entry").write(writer, f"/{CUSTOM}", "")


def test_a_default_entry_that_changed_meanwhile_is_not_copied(tmp_path: Path) -> None:
    made = plan(madegrub.box(tmp_path), "once:nohz-full")
    hosttrees.write(tmp_path, {"boot/grub/grub.cfg": madegrub.menu("1>1")})
    with pytest.raises(OSError, match="default entry has changed"):
        do(tmp_path, made)
    assert not (tmp_path / CUSTOM).exists()


@pytest.mark.parametrize("name", BOOT)
def test_every_boot_parameter_can_be_had_once(tmp_path: Path, name: str) -> None:
    madegrub.box(tmp_path)
    if name == "nosmt":
        hosttrees.write(tmp_path, {f"{hosttrees.CPU}/smt/active": "1\n", f"{hosttrees.CPU}/smt/control": "on\n"})
    word = f"once:{name}=1" if name == "max-cstate" else f"once:{name}"
    made = plan(tmp_path, word)
    assert [c.kind for c in made.changes] == ["grub-entry", "grub-once", "grub-next"], made.skipped
    do(tmp_path, made)
    assert f" quiet {made.changes[1].after}\n" in (tmp_path / CUSTOM).read_text()
    assert not plan(tmp_path, word).changes
    do(tmp_path, made, undo=True)
    assert not (tmp_path / CUSTOM).exists()


def test_other_boot_loaders_are_told_the_commands(tmp_path: Path) -> None:
    for name, files, command in (
        (
            "fedora",
            {"etc/os-release": "ID=fedora\n", "usr/sbin/grubby": "x\n", "boot/loader/entries/a.conf": "options ro\n"},
            "--args='nohz_full=6-7'; grub2-reboot jitter-workshop-once",
        ),
        ("systemd", {"boot/loader/loader.conf": "timeout 3\n"}, "bootctl set-oneshot jitter-workshop-once.conf"),
        ("none", {}, "starts this machine to add 'nohz_full=6-7'"),
    ):
        root = hosttrees.small(tmp_path / name, 8)
        hosttrees.write(root, {**files, f"{hosttrees.CPU}/nohz_full": "(null)\n"})
        made = plan(root, "once:nohz-full")
        assert not made.changes
        assert command in made.skipped[0].reason, name


def test_words() -> None:
    assert parse_wanted(["once:max-cstate=1"]) == (Wanted("max-cstate", "1", once=True),)
    assert str(Wanted("max-cstate", "1", once=True)) == "once:max-cstate=1"
    once = set_for_one_boot(parse_wanted(["governor", "boot:nohz-full", "once:isolcpus"]))
    assert tuple(map(str, once)) == ("governor", "once:nohz-full", "once:isolcpus")
    for words in (["once:governor"], ["once:nohz-full", "nohz-full"], ["once:"]):
        with pytest.raises(UsageError):
            parse_wanted(words)
    with pytest.raises(UsageError, match="is a boot parameter"):
        set_for_one_boot(parse_wanted(["governor"]))
