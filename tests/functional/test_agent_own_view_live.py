"""The agent's own view of the kernel's trace on this machine's kernel, where the caller sees no mount of it.

The tests run in a mount namespace of their own, in which the trace is unmounted: the host keeps its mount.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jitter_workshop.agent.tracing import instances
from jitter_workshop.host.root import HostRoot
from jitter_workshop.tuning.writer import HostWriter

TREE = Path(__file__).resolve().parents[2]
PRIVATE = """\
mount --make-rprivate /
while umount -l /sys/kernel/tracing 2>/dev/null || umount -l /sys/kernel/debug/tracing 2>/dev/null; do :; done
mount --make-rshared /
exec "$@"
"""
"""The mounts are shared with whoever copies this namespace, as systemd shares a host's: a mount may go out."""
RECORD = """\
import os, signal, subprocess, sys
from pathlib import Path
from jitter_workshop.agent.client import AgentClient, agent_command

def mounts():
    return Path("/proc/self/mounts").read_text()

before = mounts()
assert " tracefs " not in before
with AgentClient(agent_command()) as agent:
    other = os.readlink(f"/proc/{agent._link._process.pid}/ns/mnt")
    assert other == os.readlink("/proc/self/ns/mnt")  # nothing is done before it is needed
    info = agent.evidence_begin(os.getpid(), [os.getpid()], "0", "mono", False)
    number = agent._link._process.pid
    assert info.own_view
    assert os.readlink(f"/proc/{number}/ns/mnt") != os.readlink("/proc/self/ns/mnt")
    inside = Path(f"/proc/{number}/root/sys/kernel/tracing/instances")
    ours = [one.name for one in inside.iterdir() if f"-{number}@" in one.name]
    assert len(ours) == 2
    assert mounts() == before
    assert not list(Path("/sys/kernel/tracing").iterdir())
    agent.evidence_start()
    os.sched_setaffinity(0, {0})
    subprocess.run(["true"], check=True)
    assert agent.evidence_read().events
    if sys.argv[1] == "kill":
        os.kill(number, signal.SIGKILL)
        print(*ours, flush=True)
        os._exit(0)
    agent.evidence_end()
    assert " tracefs " not in Path(f"/proc/{number}/mounts").read_text()
    again = agent.evidence_begin(os.getpid(), [os.getpid()], "0", "mono", False)
    assert again.own_view
    agent.evidence_end()
assert mounts() == before
print(*ours)
"""

WRITE = """\
import os, subprocess, sys
from pathlib import Path
from jitter_workshop.agent.tracing.own_view import OwnView
from jitter_workshop.host.root import HostRoot
from jitter_workshop.tuning.writer import HostWriter

folder = Path(sys.argv[1])
written, later = folder / "written", folder / "later"
later.mkdir()
adjusted = Path(f"/proc/{os.getpid()}/oom_score_adj")
told, tell = os.pipe()
heard, answer = os.pipe()
if (child := os.fork()) == 0:
    view = OwnView(HostRoot(), HostWriter())
    written.write_text("by the view")
    HostWriter().write(str(adjusted), "7")
    os.write(tell, b"!")
    os.read(heard, 1)
    os._exit(0 if view.mounted and (later / "of the host").is_file() else 1)
os.read(told, 1)
assert written.read_text() == "by the view"
assert adjusted.read_text() == "7\\n"
subprocess.run(["mount", "-t", "tmpfs", "nodev", str(later)], check=True)
(later / "of the host").touch()
os.write(answer, b"!")
assert os.waitpid(child, 0)[1] == 0
"""


def _why_not() -> str:
    if os.geteuid() != 0:
        return "only root may mount and record the kernel's trace"
    if instances.own_numbers(HostWriter()):
        return "a container with process numbers of its own"
    if instances.mount_command(HostRoot()):
        return ""
    probe = subprocess.run(["unshare", "-m", "mount", "--make-rprivate", "/"], capture_output=True, check=False)
    return "no mount namespace can be made" if probe.returncode else ""


pytestmark = [pytest.mark.host, pytest.mark.skipif(bool(WHY := _why_not()), reason=WHY or "it can be had")]


@pytest.mark.parametrize("end", ["orderly", "kill"])
def test_a_trace_is_recorded_although_none_is_mounted(end: str) -> None:
    before = Path("/proc/self/mounts").read_text()
    ours = unmounted(RECORD, end).split()
    assert Path("/proc/self/mounts").read_text() == before
    assert len(ours) == 2
    _gone(ours)


def test_a_write_from_the_view_reaches_the_host(tmp_path: Path) -> None:
    unmounted(WRITE, str(tmp_path))


def unmounted(program: str, word: str) -> str:
    """Run a program where the trace is not mounted, and return what it prints."""
    command = ["unshare", "-m", "sh", "-c", PRIVATE, "sh", sys.executable, "-c", program, word]
    done = subprocess.run(command, cwd=TREE, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _gone(names: list[str]) -> None:
    """Wait until the watching child of a killed agent has removed its instances."""
    folder, ends = Path("/sys/kernel/tracing/instances"), time.monotonic() + instances.PATIENCE_S * 2
    while any((folder / name).is_dir() for name in names) and time.monotonic() < ends:
        time.sleep(0.02)
    assert not [name for name in names if (folder / name).is_dir()]
