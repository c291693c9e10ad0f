"""Made hosts that lose power: the agent in this process, the programs that it runs, GRUB, and what is asked of the next
``restore``.

The programs write as the real ones do and sync nothing: grub-mkconfig (2.06) makes ``grub.cfg.new`` and pours it into
``grub.cfg``; grubby for boot loader entries is a shell script that calls ``sed -i`` on one entry after the other.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jitter_workshop.agent.changes import Changes, Setup
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import ApplyResult, RestoreResult
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.journal import read_journals
from jitter_workshop.tuning.planning import digest, plan_changes
from jitter_workshop.tuning.tunables.registry import parse_wanted
from tests import hosttrees, madegrub
from tests.agent_on_tree import FakeKernel, Steps
from tests.powercuts import Cut, Recorder, Tree, cuts, distinct, kills, put_tree, read_tree

LASTING = ("boot", "etc", "var")
NAMES = ("isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity")
WORDS = ("isolcpus", "nohz-full", "rcu-nocbs", "irqaffinity", "governor=performance", "thp")
ONCE = ("once:nohz-full", "once:rcu-nocbs")
THP = "sys/kernel/mm/transparent_hugepage/enabled"
MENU = "boot/grub/grub.cfg"
_DROPINS = "etc/default/grub.d"
_BASE = "console=ttyS0,115200 quiet"
_APPEND = re.compile(r'GRUB_CMDLINE_LINUX="\$GRUB_CMDLINE_LINUX ([^"\n]*)"\n')


# -- the programs -----------------------------------------------------------------------------------------------------


def menu_of(root: Path) -> str:
    """The menu that grub-mkconfig makes of the tree's settings. Raise OSError where a shell could not read them."""
    words = _BASE
    for path in sorted((root / _DROPINS).glob("*.cfg")):
        text = path.read_text()
        found = _APPEND.search(text)
        if found is None and text.strip():
            raise OSError(f"{path.name}: Syntax error: Unterminated quoted string")
        words += f" {found[1]}" if found else ""
    return madegrub.menu().replace(_BASE, words)


def update_grub(root: Path) -> None:
    new, old = root / f"{MENU}.new", root / MENU
    if new.exists():
        os.unlink(new)
    _pour(new, os.O_CREAT | os.O_EXCL, menu_of(root))
    _pour(old, os.O_CREAT, new.read_text())
    os.unlink(new)


def grubby(root: Path, arguments: Sequence[str]) -> None:
    removed = arguments[1].removeprefix("--remove-args=").split()
    added = arguments[2].removeprefix("--args=").split() if len(arguments) > 2 else []

    def changed(words: str) -> str:
        return " ".join([w for w in words.split() if w.partition("=")[0] not in removed] + added)

    settings = root / "etc/default/grub"
    _sed(settings, re.sub(r'(?<=^GRUB_CMDLINE_LINUX=")[^"]*', lambda m: changed(m[0]), settings.read_text()))
    for path in sorted((root / "boot/loader/entries").glob("*.conf")):
        _sed(path, re.sub(r"^options .*", lambda m: changed(m[0]), path.read_text(), flags=re.MULTILINE))


def _sed(path: Path, text: str) -> None:
    """``sed -i``: a file with a new name, renamed."""
    new = next(p for n in range(1_000) if not (p := path.with_name(f"sed{n:06d}")).exists())
    _pour(new, os.O_CREAT | os.O_EXCL, text, parts=1)
    os.rename(new, path)


def _pour(path: Path, flags: int, text: str, parts: int = 2) -> None:
    file = os.open(path, os.O_WRONLY | os.O_TRUNC | flags, 0o644)
    data = text.encode()
    size = -(-len(data) // parts) or 1
    for at in range(0, len(data), size):
        os.write(file, data[at : at + size])
    os.close(file)


class CutHost(FakeKernel):
    """A made host with its programs. ``fails``: how often they fail before they work. ``wrote``: whether anything was
    written to the kernel."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, Steps({}), {})
        self.fails = 0
        self.wrote = False
        self.ran: list[str] = []

    def write(self, path: str, text: str) -> None:
        self.wrote = True
        super().write(path, text)

    def run(self, program: str, arguments: tuple[str, ...]) -> None:
        self.ran.append(program)
        if self.fails:
            self.fails -= 1
            raise OSError(f"{program} failed: no space left on device")
        if program.endswith("update-grub"):
            update_grub(Path(self._top))
        else:
            grubby(Path(self._top), arguments)


# -- a machine --------------------------------------------------------------------------------------------------------


class Box:
    """A made machine, its agent, and its boots. ``mark``: an operation that a scene wants to be remembered."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.host = CutHost(root)
        self.recorder: Recorder | None = None
        self.mark = 0
        self.before: Tree = {}
        self.kernel: dict[str, bytes] = {}

    def ready(self) -> None:
        """Keep the state of now as the one that has to come back."""
        self.before = self.shown()
        self.kernel = {path: (self.root / path).read_bytes() for path in self._kernels()}

    def apply(self, words: Sequence[str] = WORDS, hot: str = "2-3") -> ApplyResult:
        wanted, cpus = parse_wanted(words), CpuSet.parse_list(hot)
        drawn = plan_changes(Host(HostRoot(self.root), cpus), wanted)
        changes = self._changes()
        try:
            return changes.apply(
                wanted, Host(HostRoot(self.root), cpus), [digest(c) for c in drawn.changes], None, lambda: False
            )
        finally:
            changes.close()

    def restore(self, only: Sequence[str] = ()) -> RestoreResult:
        changes = self._changes()
        try:
            return changes.restore(only, None)
        finally:
            changes.close()

    def boot(self, rescue: bool = False) -> None:
        """Start the kernel with what the disk says; ``rescue``: from elsewhere, with nothing of it."""
        if self.host.wrote:
            self.host.wrote = False
            for path, data in self.kernel.items():
                (self.root / path).write_bytes(data)
        line = "quiet" if rescue else self._line()
        boot_id = self.root / "proc/sys/kernel/random/boot_id"
        number = int(boot_id.read_text()[:8], 16) + 1
        boot_id.write_text(f"{number:08x}{hosttrees.BOOT_ID[8:]}\n")
        (self.root / "proc/cmdline").write_text(f"BOOT_IMAGE=/vmlinuz {line}\n")
        hot = next((word.partition("=")[2] for word in line.split() if word.startswith("nohz_full=")), "(null)")
        (self.root / f"{hosttrees.CPU}/nohz_full").write_text(f"{hot}\n")
        if self.recorder is not None:
            block = [path for path in ("boot/grub/grubenv",) if (self.root / path).exists()]
            self.recorder.noticed(*self.kernel, "proc/cmdline", "proc/sys/kernel/random/boot_id", *block)
            self.recorder.settled()

    def running(self) -> list[str]:
        """Our parameters that the kernel was started with."""
        return [word for word in (self.root / "proc/cmdline").read_text().split() if word.partition("=")[0] in NAMES]

    def shown(self) -> Tree:
        """Return what lasts, but for our own state, GRUB's empty choice and what a sed that died left behind."""
        found = read_tree(self.root, LASTING)
        found = {p: d for p, d in found.items() if p.partition("/")[0] != "var" and "/sed" not in p}
        return {p: _plain(d) if p.endswith("/grubenv") and d is not None else d for p, d in found.items()}

    def changed(self) -> list[str]:
        """Return what is not as before."""
        now = self.shown()
        return sorted(p for p in now.keys() | self.before.keys() if now.get(p, 0) != self.before.get(p, 0))

    def broken(self) -> set[str]:
        """Files that grubby had renamed before they were whole, on a file system that does not wait for the data."""
        if not self._bls:
            return set()
        words = re.compile(rf' (?:{"|".join(NAMES)})=[^" \n]*'.encode())
        files = [p for p in self.before if p.endswith(".conf") or p == "etc/default/grub"]
        now = self.shown()
        return {p for p in files if words.sub(b"", now.get(p) or b"") != self.before[p]}

    @property
    def _bls(self) -> bool:
        return (self.root / "boot/loader/entries").is_dir()

    def kernel_changed(self) -> list[str]:
        return [path for path, data in self.kernel.items() if (self.root / path).read_bytes() != data]

    def owed(self) -> list[str]:
        folder = self.root / "var/lib/jitter-workshop/journal"
        return sorted(path.name for path in folder.glob("*.jsonl"))

    def lasting_entries(self) -> bool:
        """Return True if a boot parameter of an earlier boot is still in a journal as ours."""
        boot = (self.root / "proc/sys/kernel/random/boot_id").read_text().strip()
        return any(
            e.kind in ("grub", "grubby", "grub-once") and e.boot_id != boot
            for journal in read_journals(HostRoot(self.root))
            for e in journal.active
        )

    def _line(self) -> str:
        """The parameters of the entry that GRUB starts, which forgets what was chosen for one boot. Where the menu is
        empty or cut short, somebody starts the machine by hand."""
        entries = sorted((self.root / "boot/loader/entries").glob("*.conf"))
        if entries:
            lines = (line for path in entries for line in path.read_text().splitlines() if line.startswith("options "))
            return next(lines, "options quiet").removeprefix("options ")
        block = self.root / "boot/grub/grubenv"
        data = block.read_bytes()
        chosen = re.search(rb"^next_entry=([^\n#]+)\n", data, re.MULTILINE)
        custom = self.root / "boot/grub/custom.cfg"
        text = (self.root / MENU).read_text(errors="replace") if (self.root / MENU).exists() else ""
        if chosen:
            block.write_bytes(data.replace(chosen[0], b"next_entry=\n").ljust(1024, b"#"))
            if custom.exists() and chosen[1].decode() in custom.read_text():
                text = custom.read_text()
        found = re.search(r"^\tlinux\t\S+ (.*)\n(?:.*\n)*?\}\n", text, re.MULTILINE)
        return found[1] if found else "quiet"

    def _kernels(self) -> list[str]:
        governors = [f"{hosttrees.CPU}/cpufreq/policy{n}/scaling_governor" for n in range(4)]
        return [path for path in (*governors, THP) if (self.root / path).exists()]

    def _changes(self) -> Changes:
        return Changes(
            Setup(
                root=HostRoot(self.root),
                writer=self.host,
                top=str(self.root),
                owner=os.geteuid(),
                uid=1000,
                who="user 1000",
                tree="tests",
                lock_wait_s=0.2,
            )
        )


def _plain(block: bytes) -> bytes:
    """A block of GRUB's without the empty choice that GRUB leaves behind."""
    return block.replace(b"next_entry=\n", b"").ljust(1024, b"#")


def debian(root: Path) -> Box:
    """A Debian with GRUB's menu, four CPUs with governors, huge pages."""
    madegrub.box(root, cpus=4)
    defrag = "always defer defer+madvise [madvise] never\n"
    files: dict[str, str] = {THP: "[always] madvise never\n", THP.replace("enabled", "defrag"): defrag}
    for n in range(4):
        files |= hosttrees.policy(
            n, cpus=str(n), driver="acpi-cpufreq", governor="powersave", low_khz=800_000, high_khz=2_400_000
        )
    hosttrees.write(root, files)
    update_grub(root)
    return Box(root)


def bare_debian(root: Path) -> Box:
    """The same before anybody made a folder for drop-ins."""
    box = debian(root)
    shutil.rmtree(root / _DROPINS)
    return box


def fedora(root: Path) -> Box:
    """A Fedora with three boot loader entries, a kernel's each and one to rescue."""
    hosttrees.small(root, 4)
    entry = "title Fedora {0}\nversion {0}\nlinux /vmlinuz-{0}\noptions root=UUID=1 ro quiet\n"
    files = {
        "etc/os-release": "ID=fedora\n",
        "etc/default/grub": 'GRUB_CMDLINE_LINUX="quiet"\n',
        "usr/sbin/grubby": "#!/bin/sh\n",
        "boot/grub2/grubenv": madegrub.block(saved_entry="0"),
        "proc/irq/default_smp_affinity": "ff\n",
        f"{hosttrees.CPU}/nohz_full": "(null)\n",
    }
    files |= {f"boot/loader/entries/{n}.conf": entry.format(n) for n in ("6.11", "6.12", "rescue")}
    return Box(hosttrees.write(root, files))


# -- what is asked of the next restore --------------------------------------------------------------------------------


@dataclass
class Findings:
    """``states``: how many were made; ``distinct``: how many of them are different; ``again``: states of a second cut,
    during the restore behind the first. ``wrong``: class of failure → how many; ``example`` one of each."""

    states: int = 0
    distinct: int = 0
    killed: int = 0
    again: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    example: dict[str, str] = field(default_factory=dict)

    def add(self, problems: Sequence[str], where: str) -> None:
        for problem in problems:
            self.wrong[problem] += 1
            self.example.setdefault(problem, where)

    def __str__(self) -> str:
        head = (
            f"{self.states} states, {self.distinct} distinct, {self.killed} after a kill, {self.again} of a second cut"
        )
        return "\n".join([head, *(f"  {n} × {what} [{self.example[what]}]" for what, n in self.wrong.most_common())])


Play = Callable[[Box], None]


def record(box: Box, play: Play) -> Recorder:
    recorder = box.recorder = Recorder(box.root, LASTING)
    try:
        with recorder:
            play(box)
    finally:
        box.recorder = None
    return recorder


def judge(box: Box, *, same_boot: bool = False, fails: bool = False) -> list[str]:
    """Run the next ``restore`` on the tree as it stands; what is wrong of it, in words without numbers. ``fails``: the
    system's programs fail in it, which has to be told and made good by a further one."""
    wrong = []
    if fails:
        box.host.fails, ran = 1_000, len(box.host.ran)
        result = box.restore()
        box.host.fails = 0
        if len(box.host.ran) > ran and not (result.left_alone and box.owed()):
            wrong.append("what had to follow failed without a message, or nothing is owed")
    ours, broken = _ours_on(box), box.broken()
    lasting = box.lasting_entries()
    running = bool(box.running())
    result = box.restore()
    left = [path for path in box.changed() if path not in broken]
    told = [one for one in result.left_alone if one.tunable != "journal"]
    if broken:  # by grubby, which nothing here can mend: what is whole has to be clean all the same
        return [f"lost for good beside what grubby broke: {_words(left)}"] if left and not told else []
    if left and not (result.left_alone and box.owed()):
        wrong.append(f"lost for good: {_words(left)}")
    elif left or told:
        why = "; ".join(sorted({one.reason.partition(":")[0][:60] for one in result.left_alone}))
        wrong.append(f"left alone: {_words(left)} ({why})")
    elif ours and not result.restored and not result.left_alone:
        wrong.append(f"'nothing to give back' while there was: {', '.join(ours)}")
    if running and not lasting and not same_boot:
        wrong.append("the kernel has parameters of ours that are not owed")
    elif result.needs_reboot is not (running and lasting):
        wrong.append(f"needs_reboot is {result.needs_reboot} where the kernel {'has' if running else 'has not'} ours")
    if same_boot and box.kernel_changed():
        wrong.append(f"run-time setting lost: {_words(box.kernel_changed())}")
    if not wrong:
        again = box.restore()
        if again.restored or again.left_alone or box.owed() or box.changed():
            wrong.append("a further restore still finds something")
    return wrong


def survey(
    box: Box,
    play: Play,
    *,
    few: int = 6,
    rescue: bool = False,
    second: int = 0,
    fails: bool = False,
    since: Callable[[Recorder], int] | None = None,
    killed: bool = True,
) -> Findings:
    """Play a scene, cut the power at each moment of it, and look at the restore of the next boot.

    ``few``: see ``cuts``. ``rescue``: the machine is started from elsewhere. ``second``: of every so many states, cut
    that restore too. ``fails``: see ``judge``. ``since``: the operation from which on the power is cut. ``killed``:
    look at kills too."""
    box.ready()
    kernel = _boot_of(box)
    recorder = record(box, play)
    there = {p: (box.root / p).read_bytes() for p in kernel}
    found = Findings()
    found.states, states = distinct(cuts(recorder, few, since(recorder) if since else 0))
    found.distinct = len(states)
    for n, state in enumerate(states):
        _stand(box, state.tree, there)
        box.boot(rescue)
        if second and n % second == second - 1:
            _cut_again(box, state, found, rescue)
            continue
        found.add(_judge(box, fails=fails), str(state))
    for count, tree, files in kills(recorder) if killed else ():
        _stand(box, tree, {**kernel, **box.kernel, **files})
        box.host.wrote = True
        found.killed += 1
        found.add(_judge(box, same_boot=True), f"killed after {count} operations")
    return found


def _cut_again(box: Box, state: Cut, found: Findings, rescue: bool) -> None:
    there = _boot_of(box)
    recorder = record(box, lambda box: box.restore() and None)
    for further in distinct(cuts(recorder, 2))[1]:
        found.again += 1
        _stand(box, further.tree, there)
        box.boot(rescue)
        found.add(_judge(box), f"{state}; then {further}")


def _boot_of(box: Box) -> dict[str, bytes]:
    return {p: (box.root / p).read_bytes() for p in ("proc/cmdline", "proc/sys/kernel/random/boot_id")}


def _stand(box: Box, tree: Tree, files: dict[str, bytes]) -> None:
    put_tree(box.root, tree, LASTING)
    for path, data in files.items():
        (box.root / path).write_bytes(data)
    box.host.ran.clear()


def _judge(box: Box, *, same_boot: bool = False, fails: bool = False) -> list[str]:
    with Unsynced():
        try:
            return judge(box, same_boot=same_boot, fails=fails)
        except Exception as error:
            return [f"{type(error).__name__}: {str(error)[:120]}"]


def _ours_on(box: Box) -> list[str]:
    """Return where parameters of ours stand on the disk."""
    found = []
    for path, data in box.shown().items():
        if data is None or data == box.before.get(path) or Path(path).name.startswith("."):
            continue
        if any(f"{name}=".encode() in data for name in NAMES) or b"jitter-workshop-once" in data:
            found.append(Path(path).name if "zz-" not in path else "a drop-in")
    return sorted(set(found))


def _words(paths: Sequence[str]) -> str:
    return ", ".join(sorted({re.sub(r"\d{3,}", "N", Path(p).name) if "/zz-" not in p else "a drop-in" for p in paths}))


class Unsynced:
    """While it is entered nothing is synced: what a test writes need not outlive it."""

    def __enter__(self) -> None:
        self._really = os.fsync, os.fdatasync
        os.fsync = os.fdatasync = lambda file: None  # type: ignore[assignment]

    def __exit__(self, *_: object) -> None:
        os.fsync, os.fdatasync = self._really
