"""A class of real users on this machine, of which this machine knows nothing afterwards: they, root's files and the
agent's install live in a mount namespace of their own, over the real ones. Only the control groups are the machine's.
Needs root."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from jitter_workshop.agent.turns.turn_cgroup import TurnGroup
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.cpusets import find_cpusets
from jitter_workshop.tuning.writer import HostWriter

REPOSITORY = Path(__file__).parent.parent
LIB = "/opt/jitter-workshop/lib"
AGENT = f"{LIB}/jitter_workshop/agent/__main__.py"
SOCKET = "/run/jitter-workshop/agent.sock"
STUDENTS = ("jwgrace", "jwalan")
TEACHER, STRANGER = "jwada", "jweve"
LIMIT_S = 60.0
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

_OVER = """
set -e
mount --make-rprivate /
mount -t tmpfs none "$1"
for folder in etc var/lib; do
    mkdir -p "$1/$folder/up" "$1/$folder/work"
    mount -t overlay -o "lowerdir=/$folder,upperdir=$1/$folder/up,workdir=$1/$folder/work" overlay "/$folder"
done
mount -t tmpfs -o mode=755 none /run
mount -t tmpfs -o mode=755 none /opt
echo ready
exec sleep 600
"""

_PERSON = """
import json, os, subprocess, sys
sys.path.append("LIB")
from jitter_workshop.agent.client import connect_class
from jitter_workshop.errors import WorkshopError
agent, children = None, []
def do(what, **more):
    global agent
    if what == "where":
        lines = open("/proc/self/cgroup").read().splitlines()
        return {"groups": lines, "cpus": sorted(os.sched_getaffinity(0))}
    if what == "child":
        children.append(subprocess.Popen(more["command"]))
        return {"pid": children[-1].pid}
    if agent is None:
        agent = connect_class()
    if what == "take":
        granted = agent.take_turn(tuple(more.get("people", ())), more["wait_s"])
        return {"number": granted.number, "group": granted.group}
    if what == "apply":
        from jitter_workshop.tuning.planning import digest
        drawn = agent.plan(more["wanted"], more["cpus"])
        result = agent.apply(more["wanted"], more["cpus"], [digest(one) for one in drawn.changes], lease=True)
        return {"applied": [one.path for one in result.applied], "refused": [one.reason for one in result.refused]}
    if what == "turn":
        agent.turn(**more)
        return {}
    agent.close()
    return {}
for line in sys.stdin:
    try:
        told = do(**json.loads(line))
    except WorkshopError as error:
        told = {"error": error.sentence()}
        if agent is not None and agent.ended:
            agent = None
    print(json.dumps(told), flush=True)
"""


def missing() -> str:
    """Return why there can be no such class here, "" where there can be."""
    if os.geteuid() != 0:
        return "real users need root"
    for program in ("unshare", "nsenter", "setpriv", "useradd", "groupadd"):
        if shutil.which(program, path=_PATH) is None:
            return f"{program} is not here"
    if python() is None:
        return "no interpreter of the system's that every user may run"
    if len(read_topology(HostRoot()).online) < 2:
        return "one CPU: none is left for logins"
    if Path("/run/systemd/system").is_dir():
        return "systemd looks after the logins of this machine"
    tried = subprocess.run(("unshare", "-m", "mount", "-t", "tmpfs", "none", "/opt"), capture_output=True, check=False)
    return "" if tried.returncode == 0 else "no mount namespace is to be had"


def python() -> str | None:
    """An interpreter that every user may run and that is like this one enough."""
    for version in range(sys.version_info.minor, 10, -1):
        path = f"/usr/bin/python3.{version}"
        if os.access(path, os.X_OK):
            return path
    return None


class RealClass:
    """The class, not served yet (:meth:`listen`, :meth:`let_by_sudo`)."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._processes: list[subprocess.Popen[Any]] = []
        self._people: list[Person] = []
        online = sorted(read_topology(HostRoot()).online)
        self.hot, self.housekeeping = str(online[-1]), online[:-1]
        self._inside = subprocess.Popen(
            ("unshare", "-m", "sh", "-c", _OVER, "sh", str(folder)), stdout=subprocess.PIPE, text=True
        )
        assert self._inside.stdout is not None
        assert self._inside.stdout.readline() == "ready\n"
        self.run("mkdir", "-p", LIB, "/etc/jitter-workshop", "/run/jitter-workshop")
        self.run("cp", "-r", str(REPOSITORY / "jitter_workshop"), LIB)
        self.run("chown", "-R", "root:root", LIB)
        self.run("chmod", "-R", "go-w", LIB)
        self.run("groupadd", "jitterlab")
        for user in (*STUDENTS, TEACHER, STRANGER):
            groups = ("-G", "jitterlab") if user != STRANGER else ()
            self.run("useradd", "-M", "-l", "-s", "/bin/sh", *groups, user)
        self.write(
            "/etc/jitter-workshop/class.toml",
            f'name = "real"\nhot_cpus = "{self.hot}"\ninstructors = ["{TEACHER}"]\n[may_apply]\nstudents = ["*"]\n',
        )

    def run(self, *command: str, check: bool = True, **more: Any) -> subprocess.CompletedProcess[str]:
        """A command of root's inside."""
        return subprocess.run(
            (*self.enter, *command), check=check, capture_output=True, text=True, timeout=LIMIT_S, **more
        )

    def write(self, path: str, text: str, mode: str = "644") -> None:
        self.run("sh", "-c", 'umask 077; cat > "$1"', "sh", path, input=text)
        self.run("chmod", mode, path)

    def read(self, path: str) -> str:
        return self.run("cat", path).stdout

    @property
    def enter(self) -> tuple[str, ...]:
        return ("nsenter", "-t", str(self._inside.pid), "-m", "--", "env", "-i", f"PATH={_PATH}")

    def command(self, *words: str) -> tuple[str, ...]:
        """The agent's command line."""
        return (python() or "", "-I", "-S", "-B", AGENT, *words)

    def listen(self) -> None:
        """The agent behind its socket, as systemd would start it."""
        self._processes.append(
            subprocess.Popen(
                (*self.enter, "systemd-socket-activate", "-l", SOCKET, *self.command("--listen")),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
        until(lambda: self.run("test", "-S", SOCKET, check=False).returncode == 0)
        self.run("chown", "root:jitterlab", SOCKET)
        self.run("chmod", "660", SOCKET)

    def let_by_sudo(self) -> str:
        """The rule for hosts without systemd, as ``class init`` puts it there: its text."""
        rule = (REPOSITORY / "assets/class/sudoers").read_text()
        rule = rule.replace("@PYTHON@", python() or "").replace("@LIB@", LIB)
        self.write("/etc/sudoers.d/jitter-workshop", rule, "440")
        return rule

    def person(self, user: str, **environment: str) -> Person:
        self._people.append(Person(self, user, environment))
        return self._people[-1]

    def as_user(self, user: str) -> tuple[str, ...]:
        return (*self.enter, "setpriv", "--reuid", user, "--regid", user, "--init-groups")

    def close(self) -> str:
        """End it; "" or what is left of it in the machine's control groups."""
        for one in self._people:
            one.end()
        for service in self._processes:
            service.terminate()
            service.wait(LIMIT_S)
        self.run(*self.command("--sweep"), check=False)
        group = TurnGroup(HostRoot(), HostWriter())
        left = group.close(None, "") or group.release()
        self._inside.kill()
        self._inside.wait()
        return left


class Person:
    """A user's program inside, which does what it is told."""

    def __init__(self, made: RealClass, user: str, environment: dict[str, str]) -> None:
        words = [f"{name}={value}" for name, value in environment.items()]
        code = _PERSON.replace("LIB", LIB)
        self.process = subprocess.Popen(
            (*made.as_user(user), "env", *words, python() or "", "-I", "-S", "-B", "-c", code),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def asks(self, what: str, **more: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"what": what, **more}) + "\n")
        self.process.stdin.flush()

    def hears(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def does(self, what: str, **more: Any) -> Any:
        self.asks(what, **more)
        return self.hears()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        with contextlib.suppress(OSError):
            assert self.process.stdin is not None
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.kill()


def group_of(pid: int) -> str:
    """The control group of a process in the hierarchy that has the cpuset controller; "" for one that has ended."""
    sets = find_cpusets(HostRoot())
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if sets is not None and (number == "0" if sets.version == 2 else "cpuset" in controllers.split(",")):
            return path
    return ""


def running(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def until(what: Any) -> None:
    ends = time.monotonic() + LIMIT_S
    while not what():
        assert time.monotonic() < ends, "it did not come to be"
        time.sleep(0.02)
