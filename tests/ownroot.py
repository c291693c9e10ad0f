"""A copy of this machine's file system for one test: whatever is written in it is gone with it. As root.

It is an overlay in a mount namespace of its own, with its own process numbers (all end with it) and on demand without
a network. ``/proc`` is its own; ``/sys`` and ``/dev`` are this machine's.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from jitter_workshop.agent.turns.turn_cgroup import LOGINS

LIMIT_S = 120.0
"""Only ends a test that has failed."""
_TOOLS = ("unshare", "nsenter", "setpriv", "chroot", "mount")
_MAKE = """
set -e
mount -t tmpfs -o mode=755 ownroot "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount -t proc proc "$1/root/proc"
mount --rbind /sys "$1/root/sys"
mount --rbind /dev "$1/root/dev"
mount -t tmpfs -o mode=755 run "$1/root/run"
for folder in "$2" /tmp; do
    mkdir -p "$1/root$folder"
    mount --rbind "$folder" "$1/root$folder"
done
exec chroot "$1/root" /bin/sh -c 'echo ready; while read -r line; do :; done'
"""


@dataclass(frozen=True)
class OwnRoot:
    """``pid``: the process that holds it. ``base``: where its file system is seen from outside."""

    pid: int
    base: Path

    def command(self, words: Sequence[str], user: str = "root") -> list[str]:
        """The command that runs ``words`` in it, as ``user``, in whose place it is: nothing stands between."""
        enter = ["nsenter", "-t", str(self.pid), "--mount", "--pid", "--net", "--root", "--wd=/"]
        become = [] if user == "root" else ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
        return [*enter, "env", "-i", *_environment(user), *become, *words]

    def run(self, *words: str, user: str = "root", stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(words, user), input=stdin, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )

    def start(self, *words: str, user: str = "root") -> subprocess.Popen[str]:
        """Started, not waited for; its standard output is a pipe."""
        return subprocess.Popen(
            self.command(words, user), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def path(self, inside: str) -> Path:
        """A path in it, from outside."""
        return self.base / inside.lstrip("/")

    def listing(self) -> dict[str, str]:
        """Return what lies where a class host leaves something: paths with owner, mode and content."""
        found: dict[str, str] = {}
        for top in ("etc", "opt", "usr/local", "var/lib", "run"):
            for folder, folders, files in os.walk(self.base / top):
                for name in (*folders, *files):
                    path = Path(folder) / name
                    with contextlib.suppress(OSError):
                        status = path.lstat()
                        shown = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
                        found["/" + str(path.relative_to(self.base))] = (
                            f"{status.st_uid}:{status.st_gid} {status.st_mode:o} {hash(shown)}"
                        )
        return found


def _environment(user: str) -> list[str]:
    home = "/root" if user == "root" else f"/home/{user}"
    return ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", f"HOME={home}", "LC_ALL=C.UTF-8"]


@contextlib.contextmanager
def own_root(keep: Path, network: bool = False) -> Iterator[OwnRoot]:
    """``keep``: a folder that is shared with it, at its own path, as /tmp is. Skips where there can be none."""
    missing = [name for name in _TOOLS if shutil.which(name) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"a file system of one's own needs root, and {', '.join(missing) or 'nothing else'}")
    place = tempfile.mkdtemp(prefix="ownroot-", dir="/var/tmp")
    flags = ["--mount", "--pid", "--fork", "--kill-child", *([] if network else ["--net"])]
    holder = subprocess.Popen(
        ["unshare", *flags, "--propagation", "private", "sh", "-c", _MAKE, "sh", place, str(keep)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        assert holder.stderr is not None
        if holder.stdout.readline() != "ready\n":
            pytest.skip(f"a file system of one's own is not to be had here: {holder.stderr.read().strip()[-200:]}")
        first = int(Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().split()[0])
        yield OwnRoot(first, Path(f"/proc/{first}/root"))
    finally:
        holder.kill()
        holder.communicate()
        Path(place).rmdir()
        # Control groups are the machine's own: a service that was killed inside leaves its group of logins, now empty.
        for group in Path("/sys/fs/cgroup").glob(f"**/{LOGINS}"):
            with contextlib.suppress(OSError):
                group.rmdir()
