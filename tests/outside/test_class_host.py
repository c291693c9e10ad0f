"""A class host for real, as root, on a copy of this machine's file system: made, looked at, used by a student through
sudo, damaged, cut off in the middle, taken away. Without systemd, which ``tests/lab/test_lab_class.py`` boots."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jitter_workshop.agent.transport import SocketLink
from jitter_workshop.classroom import bundle, hoststeps, install
from jitter_workshop.errors import HostError
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.host.root import HostRoot
from tests.ownroot import LIMIT_S, OwnRoot, own_root

pytestmark = pytest.mark.slow

LAUNCHER = "jitter-workshop"
TOOL = "/opt/jitter-workshop/lib/jitter_workshop"
CLASS = """name = "A class"
hot_cpus = "1"
instructors = ["root"]
[may_apply]
students = ["*"]
"""
CHANGED = ("/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow")


@pytest.fixture(autouse=True)
def usual_priority() -> Iterator[None]:
    """Undo nice(1): students would inherit it, and the board would refuse them."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, min(before, 0))
    yield
    os.setpriority(os.PRIO_PROCESS, 0, before)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of 'class bundle', unpacked: what a machine without the internet is given."""
    folder = tmp_path_factory.mktemp("archive")
    bundle.write_bundle(folder / "class.tar.gz", CLASS.encode())
    with tarfile.open(folder / "class.tar.gz") as packed:
        packed.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return folder / "jitter-workshop-class"


@pytest.fixture(scope="module")
def python() -> str:
    missing = [name for name in ("sudo", "visudo", "useradd") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not here (Debian: apt install sudo passwd util-linux)")
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("a class host has a CPU to measure on and one for everybody else")
    try:
        return install.interpreter()
    except HostError as error:
        pytest.skip(f"no interpreter that a class host could use: {error.message}")


@pytest.fixture
def bare(archive: Path) -> Iterator[OwnRoot]:
    """A machine that is no class host, and has no network."""
    with own_root(archive) as machine:
        shutil.rmtree(machine.path("/var/lib/jitter-workshop"), ignore_errors=True)
        yield machine


@pytest.fixture(scope="module")
def host(archive: Path, python: str) -> Iterator[OwnRoot]:
    """A class host that several tests share, and that each leaves well."""
    with own_root(archive) as machine:
        shutil.rmtree(machine.path("/var/lib/jitter-workshop"), ignore_errors=True)
        made = machine.run(python, str(archive / "install.py"), "--yes")
        assert made.returncode == 0, made.stderr
        for words in (("useradd", "-m", "grace"), ("usermod", "-aG", "jitterlab", "grace"), ("useradd", "-m", "eve")):
            assert machine.run(*words).returncode == 0
        yield machine


def wait_until(what: Callable[[], bool], running: subprocess.Popen[str]) -> None:
    ends = time.monotonic() + LIMIT_S
    while not what():
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < ends
        time.sleep(0.002)


def end(machine: OwnRoot, running: subprocess.Popen[str]) -> None:
    """SIGKILL for what was started in a machine: nsenter(1) is its parent, and leaves with it."""
    if running.poll() is None:
        for pid in Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
    running.communicate(timeout=LIMIT_S)


def problems(machine: OwnRoot) -> list[str]:
    done = machine.run(LAUNCHER, "class", "check", "--json")
    assert done.returncode in (0, 1), done.stderr
    found = [one["what"] for one in json.loads(done.stdout)["problems"]]
    assert bool(found) is (done.returncode == 1)
    return found


def groups() -> set[Path]:
    """Control groups of a class at the top of either hierarchy: this machine's, which others may use meanwhile."""
    return {path for top in ("", "cpuset") for path in Path("/sys/fs/cgroup", top).glob("jitter-workshop-*")}


def difference(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Paths that are not as before; the user database's copy of itself before its last change does not count."""
    return sorted(
        path
        for path in before.keys() | after
        if before.get(path) != after.get(path) and not path.endswith("-") and path not in CHANGED
    )


def test_from_the_archive_to_nothing_left(bare: OwnRoot, archive: Path, python: str) -> None:
    """On a machine without network: shown, made, made again, well, removed, and nothing is left."""
    before, there = bare.listing(), groups()
    databases = [bare.path(name).read_text() for name in CHANGED]
    shown = bare.run(python, str(archive / "install.py"), "--show")
    assert shown.returncode == 0, shown.stderr
    assert "%jitterlab ALL=(root) NOPASSWD:" in shown.stdout
    assert difference(before, bare.listing()) == []
    refused = bare.run(python, str(archive / "install.py"))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "no terminal to ask" in refused.stderr
    assert difference(before, bare.listing()) == []

    made = bare.run(python, str(archive / "install.py"), "--yes")
    assert made.returncode == 0, made.stderr
    assert bare.path("/etc/jitter-workshop/class.toml").read_text() == CLASS
    # The written files are those that were shown, and no others.
    places = ("/opt/jitter-workshop", "/var/lib/jitter-workshop", "/run/jitter-workshop")
    created = set(difference(before, bare.listing()))
    inside = {path for path in created if path.startswith(tuple(f"{place}/" for place in places))}
    assert created - inside - {"/etc/.pwd.lock", "/etc/jitter-workshop", "/run/sudo", "/run/sudo/ts"} == {
        *places,
        "/etc/jitter-workshop/class.toml",
        "/etc/sudoers.d/jitter-workshop",
        "/usr/local/bin/jitter-workshop",
        "/var/lib/jitter-workshop-board",
    }
    assert all(path in shown.stdout for path in created - inside if "/run/sudo" not in path and "lock" not in path)
    again = bare.run(python, str(archive / "install.py"), "--yes")
    assert again.stdout.startswith("this is a class host already;")
    assert problems(bare) == []

    gone = bare.run(LAUNCHER, "class", "remove", "--yes")
    assert (gone.returncode, gone.stdout) == (0, "nothing is left\n"), gone.stderr
    assert [bare.path(name).read_text() for name in CHANGED] == databases
    left = [path for path in difference(before, bare.listing()) if not path.startswith("/run/sudo")]
    assert left in ([], ["/etc/.pwd.lock"]), left
    assert groups() <= there


def test_a_student_measures_and_is_given_the_turn(host: OwnRoot) -> None:
    words = [LAUNCHER, "measure", "--workload", "spin", "--duration", "0.2", "--json", "--wait", "60"]
    done = host.run(*words, user="grace")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["workload"] == "spin"
    turns = host.path("/var/lib/jitter-workshop/turns.jsonl").read_text()
    assert [json.loads(line)["what"] for line in turns.splitlines()][:2] == ["turn began", "turn ended"]
    assert '"user":"grace"' in turns


def test_a_student_may_start_the_two_services_and_nothing_else(host: OwnRoot) -> None:
    python = install.interpreter()
    agent = [python, "-I", "-S", "-B", f"{TOOL}/agent/__main__.py"]
    for words in (["/bin/sh"], [*agent, "--sweep"], [python], [python, "-I", "-S", "-B", f"{TOOL}/cli.py"], agent[:4]):
        done = host.run("sudo", "-n", "--", *words, user="grace")
        assert done.returncode == 1, words
        assert "password is required" in done.stderr
    assert host.run("sudo", "-n", "-u", "jitterlab", "--", *agent, user="grace").returncode == 1
    assert host.run("sudo", "-n", "--", *agent, user="grace").returncode == 0


def test_a_user_outside_the_group_gets_no_turn_and_a_student_no_setup(host: OwnRoot) -> None:
    done = host.run(LAUNCHER, "class", "turn", "take", user="eve")
    assert done.returncode == 2
    assert done.stdout == ""
    for words in (["init", "--yes"], ["check"], ["remove", "--yes"]):
        done = host.run(LAUNCHER, "class", *words, user="grace")
        assert (done.returncode, done.stdout) == (2, "")
        assert "use sudo" in done.stderr


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda at: at("/usr/local/bin/jitter-workshop").chmod(0o775), "/usr/local/bin/jitter-workshop can be written"),
        (lambda at: at("/etc/sudoers.d/jitter-workshop").unlink(), "/etc/sudoers.d/jitter-workshop is missing"),
        (
            lambda at: at("/etc/sudoers.d/jitter-workshop").chmod(0o644),
            "sudoers.d/jitter-workshop has mode 644, not 440",
        ),
        (lambda at: at("/var/lib/jitter-workshop-board").chmod(0o777), "/jitter-workshop-board has mode 777, not 755"),
        (lambda at: shutil.rmtree(at("/var/lib/jitter-workshop-board")), "/var/lib/jitter-workshop-board is missing"),
        (lambda at: at("/etc/jitter-workshop/class.toml").unlink(), "class.toml is missing"),
        (lambda at: os.chown(at("/etc/jitter-workshop/class.toml"), 1, 1), "/class.toml belongs to user 1"),
        (lambda at: at("/etc/jitter-workshop").chmod(0o777), "/etc/jitter-workshop can be written by others"),
        (lambda at: at(f"{TOOL}/cli.py").chmod(0o666), "cli.py can be written by others"),
        (lambda at: at(f"{TOOL}/tui/app.py").write_text("half"), "app.py has changed since"),
        (lambda at: shutil.rmtree(at(f"{TOOL}/lessons")), "is missing"),
    ],
)
def test_check_names_the_broken_part_and_init_mends_it(
    how: Callable[[Callable[[str], Path]], object],
    said: str,
    host: OwnRoot,
    archive: Path,
    python: str,
) -> None:
    how(host.path)
    found = problems(host)
    assert any(said in one for one in found), found
    itself = [LAUNCHER, "class", "init"] if "/" in said else [python, str(archive / "install.py")]
    mended = host.run(*itself, "--yes")
    assert mended.returncode == 0, mended.stderr
    assert problems(host) == []


def test_a_user_or_group_that_is_gone_is_named_and_made_again(host: OwnRoot, archive: Path, python: str) -> None:
    assert host.run("userdel", "jitterlab").returncode == 0
    host.run("groupdel", "jitterlab")
    found = problems(host)
    assert any("there is no user jitterlab" in one for one in found)
    assert any("there is no group jitterlab" in one for one in found)
    assert host.run(python, str(archive / "install.py"), "--yes").returncode == 0
    assert host.run("usermod", "-aG", "jitterlab", "grace").returncode == 0
    assert problems(host) == []


def test_a_class_file_that_makes_no_sense_is_named_and_never_overwritten(host: OwnRoot) -> None:
    file = host.path("/etc/jitter-workshop/class.toml")
    try:
        file.write_text(CLASS + "\nlongest = 3\n")
        assert any("longest" in one for one in problems(host))
        assert host.run(LAUNCHER, "class", "init", "--yes").returncode == 2
        assert "longest = 3" in file.read_text()
        file.write_text(CLASS.replace('"1"', '"900"'))
        assert any("900" in one for one in problems(host))
        file.write_text(CLASS.replace("root", "nobody-of-this-name"))
        assert any("nobody-of-this-name" in one for one in problems(host))
        file.write_text(CLASS.replace('["root"]', '["eve"]'))
        [problem] = problems(host)
        assert problem.startswith("the instructor eve ")
        assert "not in the group jitterlab" in problem
        file.write_text(CLASS.replace("students", "student"))
        [problem] = problems(host)
        assert problem.startswith("/etc/jitter-workshop/class.toml says what student may")
        assert problem.endswith("no such user")
        file.write_text(CLASS.replace("A class", "Another"))
        assert problems(host) == []
    finally:
        file.write_text(CLASS)


def test_a_doubtful_choice_is_told_before_it_is_made(host: OwnRoot) -> None:
    file, online = host.path("/etc/jitter-workshop/class.toml"), read_topology(HostRoot()).online
    host.path("/srv/odd.toml").write_text(CLASS.replace('"1"', f'"{online}"').replace("students", "student"))
    try:
        done = host.run(LAUNCHER, "class", "init", "--yes", "--file", "/srv/odd.toml")
        assert done.returncode == 0, done.stderr
        said = " ".join(done.stderr.split())
        for one in ("! every CPU is hot: ", "! /etc/jitter-workshop/class.toml says what student may apply, but"):
            assert -1 < said.find(one) < said.find("… ")
    finally:
        file.write_text(CLASS)


def test_another_class_file_takes_the_place_of_the_old_one(host: OwnRoot) -> None:
    host.path("/srv/other.toml").write_text(CLASS.replace("A class", "Another"))
    try:
        done = host.run(LAUNCHER, "class", "init", "--yes", "--file", "/srv/other.toml")
        assert done.returncode == 0, done.stderr
        assert 'name = "Another"' in host.path("/etc/jitter-workshop/class.toml").read_text()
        assert problems(host) == []
    finally:
        host.path("/etc/jitter-workshop/class.toml").write_text(CLASS)


@pytest.mark.soak
def test_a_damaged_tool_does_not_mend_itself_from_itself(host: OwnRoot, archive: Path, python: str) -> None:
    host.path(f"{TOOL}/tui/app.py").write_text("half")
    try:
        done = host.run(LAUNCHER, "class", "init", "--yes")
        assert done.returncode == 2
        assert "tui/app.py has changed" in done.stderr
        assert "install.py" in done.stderr
    finally:
        assert host.run(python, str(archive / "install.py"), "--yes").returncode == 0


@pytest.mark.parametrize("module", ["agent", "classroom"])
def test_each_service_takes_the_socket_that_systemd_hands_over(module: str, host: OwnRoot) -> None:
    """The protocol of the units, without systemd as init: one process listens, and each caller is answered."""
    if shutil.which("systemd-socket-activate") is None:
        pytest.skip("systemd-socket-activate is not here (Debian: apt install systemd)")
    place, user = f"/run/given-{module}/s", "root" if module == "agent" else "jitterlab"
    host.path(place).parent.mkdir()
    host.path(place).parent.chmod(0o777)
    words = [install.interpreter(), "-I", "-S", "-B", f"{TOOL}/{module}/__main__.py", "--listen"]
    running = host.start("systemd-socket-activate", "--listen", place, *words, user=user)
    try:
        wait_until(host.path(place).is_socket, running)
        assert [hoststeps.answers(lambda: SocketLink(str(host.path(place))), "it") for _ in range(3)] == ["", "", ""]
    finally:
        end(host, running)


def service(module: str) -> list[str]:
    """The command by which a student starts a service on a host without systemd."""
    as_whom = [] if module == "agent" else ["-u", "jitterlab"]
    return ["sudo", "-n", *as_whom, "--", install.interpreter(), "-I", "-S", "-B", f"{TOOL}/{module}/__main__.py"]


def greeted(running: subprocess.Popen[str]) -> str:
    """Return what a service says to a greeting, "" where it has ended."""
    assert running.stdin is not None
    assert running.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        running.stdin.write('{"verb":"hello","id":1}\n')
        running.stdin.flush()
    return running.stdout.readline()


def last_of(running: subprocess.Popen[str]) -> int:
    """The youngest of a process's descendants, which is the one that serves."""
    pid = running.pid
    while children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        pid = int(children[-1])
    return pid


@pytest.mark.parametrize("module", ["agent", "classroom"])
def test_a_student_has_four_connections_also_by_sudo(module: str, host: OwnRoot) -> None:
    """Count each connection of a student, also one whose input is a socket that the student made."""
    assert host.run("sh", "-c", "id alan || useradd -m -G jitterlab alan").returncode == 0
    running: list[subprocess.Popen[str]] = []
    try:
        for _ in range(4):
            running.append(host.start(*service(module), user="grace"))
            assert '"ok"' in greeted(running[-1])
        fifth = host.run(*service(module), user="grace", stdin='{"verb":"hello","id":1}\n')
        assert (fifth.returncode, fifth.stdout) == (2, "")
        assert "you already have 4 connections" in fifth.stderr
        mine, theirs = socket.socketpair()
        with mine, theirs:
            words = host.command(service(module), "grace")
            done = subprocess.run(
                words, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, timeout=LIMIT_S, check=False
            )
            assert done.returncode == 2
            assert b"you already have 4 connections" in mine.recv(4096)
        other = host.run(*service(module), user="alan", stdin='{"verb":"hello","id":1}\n')
        assert '"ok"' in other.stdout, other.stderr
        assert running[0].communicate(timeout=LIMIT_S)[0] == ""  # the end of its input ends it
        again = host.run(*service(module), user="grace", stdin='{"verb":"hello","id":1}\n')
        assert '"ok"' in again.stdout, again.stderr
    finally:
        for one in running:
            end(host, one)


@pytest.mark.parametrize("module", ["agent", "classroom"])
def test_no_service_runs_where_its_caller_measures(module: str, host: OwnRoot) -> None:
    running = host.start("taskset", "-c", "1", *service(module), user="grace")
    try:
        assert '"ok"' in greeted(running)
        assert os.sched_getaffinity(last_of(running)) == os.sched_getaffinity(0) - {1}
    finally:
        end(host, running)


@pytest.mark.parametrize("low", [["nice", "-n", "19"], ["chrt", "-i", "0"]])
def test_a_low_priority_of_its_callers_holds_up_no_service(low: list[str], host: OwnRoot) -> None:
    """Root's service leaves it behind; the board's cannot, so it refuses to serve."""
    running = host.start(*low, *service("agent"), user="grace")
    try:
        assert '"ok"' in greeted(running)
        pid = last_of(running)
        assert (os.sched_getscheduler(pid), os.getpriority(os.PRIO_PROCESS, pid)) == (os.SCHED_OTHER, 0)
    finally:
        end(host, running)
    done = host.run(*low, *service("classroom"), user="grace", stdin='{"verb":"hello","id":1}\n')
    assert (done.returncode, done.stdout) == (2, "")
    assert "must not run at a low priority" in done.stderr


@pytest.mark.parametrize("module", ["agent", "classroom"])
def test_last_words_are_waited_for_a_few_seconds_only(module: str, host: OwnRoot) -> None:
    """Standard error may be a pipe of the caller's that is full."""
    source, sink = os.pipe()
    try:
        os.set_blocking(sink, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(sink, b"x" * 4096)
        os.set_blocking(sink, True)
        refused = [*(["nice"] if module == "classroom" else []), *service(module)]
        done = subprocess.run(
            host.command(refused, "grace"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=sink,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode != 0
    finally:
        os.close(source)
        os.close(sink)


def test_nothing_is_removed_while_a_member_has_the_turn(host: OwnRoot) -> None:
    holding = host.start(LAUNCHER, "class", "turn", "take", user="grace")
    try:
        assert holding.stdout is not None
        assert "You have the turn" in holding.stdout.readline()
        done = host.run(LAUNCHER, "class", "remove", "--yes")
        assert done.returncode == 2
        assert "grace has the turn" in done.stderr
        assert problems(host) == []
    finally:
        end(host, holding)


@pytest.mark.soak
@pytest.mark.parametrize("then", ["init", "remove"])
def test_killed_in_the_middle(bare: OwnRoot, archive: Path, python: str, then: str) -> None:
    """SIGKILL while the tool is copied, and once the class file is there; then again, or away with it."""
    before = bare.listing()
    databases = [bare.path(name).read_text() for name in CHANGED]
    for sign in ("/opt/jitter-workshop.new/lib/PIL", "/etc/jitter-workshop/class.toml"):
        started = bare.start(python, str(archive / "install.py"), "--yes")
        wait_until(lambda sign=sign: bare.path(sign).exists(), started)
        end(bare, started)
    if then == "init":
        assert bare.run(python, str(archive / "install.py"), "--yes").returncode == 0
        assert problems(bare) == []
    gone = bare.run(python, *_remove(archive))
    assert (gone.returncode, gone.stdout) == (0, "nothing is left\n"), gone.stderr
    assert [bare.path(name).read_text() for name in CHANGED] == databases
    left = [path for path in difference(before, bare.listing()) if not path.startswith("/run/sudo")]
    assert left in ([], ["/etc/.pwd.lock"]), left


def _remove(archive: Path) -> list[str]:
    """'class remove' from the archive's own wheels: the launcher may not be there."""
    code = (
        "import sys, tempfile, zipfile, pathlib\n"
        "lib = tempfile.mkdtemp()\n"
        f"for one in pathlib.Path({str(archive / 'wheels')!r}).glob('*.whl'):\n"
        "    zipfile.ZipFile(one).extractall(lib)\n"
        "sys.path.insert(0, lib)\n"
        "from jitter_workshop.cli import main\n"
        "sys.exit(main(['class', 'remove', '--yes']))\n"
    )
    return ["-B", "-c", code]
