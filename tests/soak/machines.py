"""Machines of a class in namespaces of this one: a desk where an instructor sits, and hosts that it reaches by ssh.

The desk has a network of its own with a bridge, and no way out of it. Each host has a network, host key, name, process
numbers and file system of its own: an overlay over this machine's, so that what is written there stays there. All of it
lives below one process that ends when its standard input does: whatever becomes of the tests, nothing stays.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

NETWORK = "10.77.0"
INSTRUCTOR = "ada"
_SCRIPT = Path(__file__).with_name("machine.sh")
_SYSTEM = ("bin", "boot", "etc", "lib", "sbin", "usr", "var", "dev", "proc", "sys")
"""The top folders of this machine (and lib32 …) whose content a host sees; the others are there, and empty."""
_EMPTY = ("usr/local", "etc/ssh", "etc/sudoers.d", "var/tmp")
_GONE = ("etc/jitter-workshop", "var/lib/jitter-workshop", "var/lib/jitter-workshop-board")
_FIRST_UID = 2000
_SSHD = """\
Port 22
HostKey /etc/ssh/host_key
AuthorizedKeysFile /etc/ssh/authorized
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin no
UsePAM no
Subsystem sftp internal-sftp
PidFile /run/sshd.pid
"""


def missing() -> str:
    """Return why there can be no such machines here, "" where there can."""
    if os.geteuid() != 0:
        return "namespaces of this kind are made by root"
    wanted = ("unshare", "nsenter", "ip", "pivot_root", "ssh-keygen", "sudo", "bash", "/usr/sbin/sshd")
    return ", ".join(f"there is no {one}" for one in wanted if shutil.which(one) is None)


class Machines:
    """``names``: the hosts. ``people``: accounts on each, beside the instructor, who may do everything by sudo. All
    with the same key, which is the desk's."""

    def __init__(self, folder: Path, names: Sequence[str], people: Sequence[str] = ()) -> None:
        self.names = tuple(names)
        self.people = (INSTRUCTOR, *people)
        self._folder = folder
        self._pids: dict[str, int] = {}
        self._held: list[subprocess.Popen[str]] = []
        self.key = folder / "key"

    def __enter__(self) -> Machines:
        try:
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in reversed(self._held):
            assert one.stdin is not None
            assert one.stdout is not None
            one.stdin.close()
            one.wait(30)
            one.stdout.close()

    def desk(
        self, *words: str | Path, check: bool = True, cwd: Path = Path("/"), env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A program at the instructor's desk; ``env`` is added to what is there."""
        return self._within("desk", words, check, cwd, env or {})

    def on(self, name: str, *words: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """A program as root on a host, without ssh."""
        return self._within(name, words, check, Path("/"), {})

    def ssh(self, name: str, user: str, command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """A command line of a user's on a host, by ssh from the desk."""
        return self.desk("ssh", "-n", *self.ssh_options(), f"{user}@{self.address(name)}", command, check=check)

    def ssh_options(self) -> tuple[str, ...]:
        """Host keys are known beforehand, and nothing else is trusted."""
        known = self._folder / "known_hosts"
        words = [f"UserKnownHostsFile={known}", "StrictHostKeyChecking=yes", "BatchMode=yes", "ConnectTimeout=5"]
        return ("-F", "/dev/null", "-i", str(self.key), *(part for word in words for part in ("-o", word)))

    def address(self, name: str) -> str:
        return f"{NETWORK}.{10 + self.names.index(name)}"

    def inventory(self) -> str:
        """For Ansible, in its INI words."""
        hosts = "".join(f"{name} ansible_host={self.address(name)}\n" for name in self.names)
        return (
            f"[lab]\n{hosts}\n[lab:vars]\nansible_user={INSTRUCTOR}\nansible_ssh_private_key_file={self.key}\n"
            f"ansible_ssh_common_args={' '.join(self.ssh_options()).replace(f'-i {self.key} ', '')}\n"
            "ansible_python_interpreter=/usr/bin/python3\n"
        )

    def silence(self, name: str) -> None:
        """The host's sshd ends, with all its connections."""
        self.on(name, "sh", "-c", "kill $(pidof sshd); while pidof sshd; do sleep 0.05; done")

    def awake(self, name: str) -> None:
        """It is started again."""
        self.on(name, "/usr/sbin/sshd")

    def written(self, name: str) -> dict[str, str]:
        """Return what differs on a host from this machine: path to kind, mode, owner and digest."""
        script = (
            "cd $0/upper && find . -mindepth 1 -printf '%y %#m %U:%G %P\\n' && "
            "find . -type f -print0 | xargs -0r sha256sum"
        )
        found: dict[str, str] = {}
        for line in self.desk("sh", "-c", script, self._folder / name).stdout.splitlines():
            digest, separator, path = line.partition("  ./")
            if separator and len(digest) == hashlib.sha256().digest_size * 2:
                found[path] += f" {digest}"
            else:
                kind, mode, owner, path = line.split(" ", 3)
                found[path] = f"{kind} {mode} {owner}"
        return found

    def _start(self) -> None:
        self._folder.mkdir()
        _keygen(self.key)
        first = "mount -t tmpfs tmpfs /run && mkdir /run/netns && echo ready && read -r _ || true"
        self._hold("desk", 1, "unshare", "--net", "--mount", "--pid", "--ipc", "--fork", "--kill-child",
                   "--mount-proc", "bash", "-c", first)  # fmt: skip
        self.desk("ip", "link", "set", "lo", "up")
        self.desk("ip", "link", "add", "class", "type", "bridge")
        self.desk("ip", "address", "add", f"{NETWORK}.1/24", "dev", "class")
        self.desk("ip", "link", "set", "class", "up")
        known = ""
        for name in self.names:
            known += f"{self.address(name)} {self._host(name)}\n"
        (self._folder / "known_hosts").write_text(known)

    def _host(self, name: str) -> str:
        """Start a host; its public key."""
        place = self._folder / name
        place.mkdir()
        # Also in the desk's sight, which is how written() sees it.
        self.desk("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", place)
        _keygen(self._folder / f"{name}-key")
        made = self._folder / f"{name}-upper"
        self._fill(made, self._folder / f"{name}-key")
        self.desk("cp", "-a", made, place / "upper")
        for folder in ("work", "root"):
            self.desk("mkdir", place / folder)
        self.desk("ip", "netns", "add", name)
        self.desk("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        self.desk("ip", "link", "set", name, "master", "class", "up")
        self.desk("ip", "-n", name, "address", "add", f"{self.address(name)}/24", "dev", "eth0")
        for link in ("lo", "eth0"):
            self.desk("ip", "-n", name, "link", "set", link, "up")
        self._hold(name, 2, *self._enter("desk"), "ip", "netns", "exec", name,
                   "unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child",
                   "bash", str(_SCRIPT), name, str(place))  # fmt: skip
        return (self._folder / f"{name}-key.pub").read_text().strip()

    def _fill(self, upper: Path, host_key: Path) -> None:
        """Write the files of a host's own: accounts and ssh's settings. Cover the files of this machine that the host
        must not see."""
        for top in sorted(Path("/").iterdir()):
            if top.is_dir() and not top.is_symlink() and not top.name.startswith(_SYSTEM):
                _opaque(upper / top.name, top)
        for folder in _EMPTY:
            _opaque(upper / folder, Path("/") / folder)
        (upper / "usr" / "local" / "bin").mkdir()
        for path in _GONE:
            (upper / path).parent.mkdir(parents=True, exist_ok=True)
            if os.path.lexists(f"/{path}"):
                os.mknod(upper / path, stat.S_IFCHR, 0)
        etc = upper / "etc"
        people = [(user, _FIRST_UID + number) for number, user in enumerate(self.people)]
        _write(
            etc / "passwd", _system("/etc/passwd") + [f"{u}:x:{n}:{n}::/home/{u}:/bin/bash" for u, n in people], 0o644
        )
        _write(etc / "group", _system("/etc/group") + [f"{u}:x:{n}:" for u, n in people], 0o644)
        names = [line.partition(":")[0] for line in _system("/etc/passwd")]
        _write(etc / "shadow", [f"{user}:*:19000::::::" for user in (*names, *self.people)], 0o640)
        _write(etc / "gshadow", [f"{line.partition(':')[0]}:*::" for line in _system("/etc/group")], 0o640)
        _write(etc / "sudoers.d" / INSTRUCTOR, [f"{INSTRUCTOR} ALL=(ALL:ALL) NOPASSWD: ALL"], 0o440)
        _write(etc / "hosts", ["127.0.0.1 localhost", f"127.0.1.1 {upper.name.removesuffix('-upper')}"], 0o644)
        _write(etc / "ssh" / "sshd_config", [_SSHD], 0o644)
        _write(etc / "ssh" / "authorized", [self.key.with_suffix(".pub").read_text()], 0o644)
        _write(etc / "ssh" / "host_key", [host_key.read_text().rstrip("\n")], 0o600)
        (upper / "run" / "sshd").mkdir(mode=0o755)
        for user, number in people:
            home = upper / "home" / user
            home.mkdir(mode=0o700)
            os.chown(home, number, number)

    def _hold(self, name: str, depth: int, *words: str) -> None:
        """Start a namespace's first process, ``depth`` generations below ours, and wait until it says "ready"."""
        started = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._held.append(started)
        assert started.stdout is not None
        if started.stdout.readline() != "ready\n":
            raise RuntimeError(f"{name} does not start: code {started.wait(30)}")
        pid = started.pid
        for _ in range(depth):
            pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
        self._pids[name] = pid

    def _enter(self, name: str) -> tuple[str, ...]:
        # The desk keeps this machine's name.
        own = () if name == "desk" else ("--uts", "--root")
        return ("nsenter", "--target", str(self._pids[name]), "--net", "--mount", "--pid", "--ipc", *own)

    def _within(
        self, name: str, words: Sequence[str | Path], check: bool, cwd: Path, env: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            (*self._enter(name), f"--wdns={cwd}", *map(str, words)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            env={**os.environ, **env, "PWD": str(cwd)},
        )
        if check and done.returncode:
            raise RuntimeError(f"{name}: {words}: code {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        return done


def _system(file: str) -> list[str]:
    """The lines of accounts that every system has: whom else this machine knows is no matter there."""
    lines = Path(file).read_text().splitlines()
    return [x for x in lines if int(x.split(":")[2]) < 100 or x.partition(":")[0] in ("sshd", "nobody", "nogroup")]


def _opaque(path: Path, like: Path) -> None:
    """A folder of an overlay that hides what lies below it."""
    path.mkdir(parents=True)
    status = like.stat() if like.is_dir() else None
    path.chmod(status.st_mode & 0o7777 if status is not None else 0o755)
    os.setxattr(path, "trusted.overlay.opaque", b"y")


def _write(path: Path, lines: Sequence[str], mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))
    path.chmod(mode)


def _keygen(path: Path) -> None:
    subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path), check=True)
