"""The playbooks, with real ansible-core over real sshd: three machines in network namespaces without a way out.

The figures of status are this machine's, three times; what students measure tells nothing.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop import paths
from jitter_workshop.classroom.store import BANNER_FILE
from tests.soak.machines import INSTRUCTOR, Machines, missing

ASSETS = Path(__file__).parents[2] / "assets" / "ansible"
TARGET_PYTHON = "/usr/bin/python3"
HOSTS = ("lab01", "lab02", "lab03")
STUDENTS = ("grace", "alan")
MEMBERS = [INSTRUCTOR, *STUDENTS]
BANNER = f"{paths.BOARD_DIR}/{BANNER_FILE}"
CLASS = """\
name = "Rehearsal"
hot_cpus = "{hot}"
instructors = ["ada"]
longest_turn_minutes = {minutes}

[may_apply]
students = ["*"]
"""
_SYSTEMS_OWN = re.compile(
    r"etc/((passwd|group|shadow|gshadow)-|\.pwd\.lock|sub[ug]id-?)"  # shadow(5) keeps the last version of each
    r"|var/log(/(lastlog|wtmp|btmp))?|run/(sshd\.pid|utmp)|run/sudo(/.*)?|home/.*|root/.*"
)


@pytest.fixture(scope="module")
def ansible(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where ansible-playbook is: on the PATH, or in an environment made for this."""
    why = missing()
    if why:
        pytest.skip(why)
    asked = subprocess.run(
        (TARGET_PYTHON, "-c", "import sys; print(list(sys.version_info[:2]))"), capture_output=True, text=True
    )
    if asked.returncode or json.loads(asked.stdout) != list(sys.version_info[:2]):
        pytest.skip(f"the archive would be for {sys.version_info[:2]}, {TARGET_PYTHON} is {asked.stdout or 'not here'}")
    found = shutil.which("ansible-playbook")
    if found is not None:
        return Path(found).parent
    place = tmp_path_factory.mktemp("ansible")
    subprocess.run((sys.executable, "-m", "venv", place), check=True)
    pip = (place / "bin" / "pip", "install", "--quiet", "ansible-core>=2.16", "ansible-lint", "yamllint")
    done = subprocess.run(pip, capture_output=True, text=True, timeout=600)
    if done.returncode:
        pytest.skip(f"no ansible-core is to be had: {done.stderr.strip()[-200:]}")
    return place / "bin"


class Desk:
    """An instructor's: a folder with the archive, the playbooks as they come out of it, and an inventory."""

    def __init__(self, lab: Machines, folder: Path, programs: Path) -> None:
        self.lab = lab
        self.folder = folder
        self._programs = programs
        self.whole: bool | None = False
        """True if all are class hosts as install.yml leaves them, False if none is. A test that changes this sets the
        value."""
        self.before = {host: written(self, host) for host in HOSTS}
        self.bundle("class.tar.gz")
        self.lab.desk("tar", "xf", "class.tar.gz", cwd=folder)
        shutil.copytree(folder / "jitter-workshop-class" / "ansible", folder / "ansible")
        (folder / "ansible" / "inventory").write_text(lab.inventory())

    def workshop(self, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = (sys.executable, "-m", "jitter_workshop", *words)
        return self.lab.desk(*command, check=False, cwd=cwd or self.folder, env=self._env())

    def bundle(self, name: str, minutes: float = 4) -> str:
        """Write an archive; its name as a playbook takes it."""
        hot = max(os.sched_getaffinity(0))
        (self.folder / "class.toml").write_text(CLASS.format(hot=hot, minutes=minutes))
        done = self.workshop("class", "bundle", "-o", name, "--file", "class.toml")
        assert done.returncode == 0, done.stderr
        return f"../{name}"

    def play(self, book: str, *words: str, **variables: object) -> Played:
        words = ("ansible-playbook", "-i", "inventory", book, *words, "-e", json.dumps(variables))
        done = self.lab.desk(
            self._programs / words[0], *words[1:], check=False, cwd=self.folder / "ansible", env=self._env()
        )
        print(done.stdout, done.stderr)
        return Played(done.returncode, done.stdout + done.stderr)

    def install(self, *words: str, bundle: str = "../class.tar.gz") -> Played:
        return self.play("install.yml", *words, bundle=bundle, members=MEMBERS)

    def clear(self) -> None:
        """No class host is left."""
        if self.whole is not False:
            self.play("remove.yml")
            self.whole = False

    def _env(self) -> dict[str, str]:
        home = self.folder / "home"
        return {
            "ANSIBLE_HOME": f"{home}",
            "ANSIBLE_LOCAL_TEMP": f"{home}/tmp",
            # Sockets' names have at most 107 characters. /run is the desk's own.
            "ANSIBLE_SSH_CONTROL_PATH_DIR": "/run/ansible",
            "ANSIBLE_NOCOLOR": "1",
            "XDG_STATE_HOME": f"{home}/state",
            "XDG_CACHE_HOME": f"{home}/cache",
        }


class Played:
    """Hold what a playbook did: its code, all that it said, and of each machine the figures of the recap."""

    def __init__(self, code: int, said: str) -> None:
        self.code = code
        self.said = said
        recap = said.partition("PLAY RECAP")[2]
        self.figures = {
            host: {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", line)}
            for host, line in re.findall(r"^(\w+) +: (ok=.*)$", recap, re.MULTILINE)
        }

    def of(self, figure: str) -> list[int]:
        """One figure of all machines, in their order."""
        return [self.figures[host][figure] for host in HOSTS]


@pytest.fixture(scope="module")
def desk(ansible: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("class")
    with Machines(folder / "lab", HOSTS, STUDENTS) as lab:
        yield Desk(lab, folder, ansible)
    assert not [line for line in Path("/proc/mounts").read_text().splitlines() if str(folder) in line]


@pytest.fixture
def hosts(desk: Desk) -> Desk:
    """Three class hosts."""
    if not desk.whole:
        done = desk.install()
        assert done.code == 0, done.said
        desk.whole = True
    return desk


@contextlib.contextmanager
def silent(desk: Desk, host: str) -> Iterator[None]:
    desk.lab.silence(host)
    try:
        yield
    finally:
        desk.lab.awake(host)


def test_the_machines_are_three_and_have_no_way_out(desk: Desk) -> None:
    lab = desk.lab
    assert [lab.ssh(host, INSTRUCTOR, "hostname").stdout for host in HOSTS] == [f"{host}\n" for host in HOSTS]
    keys = {lab.on(host, "ssh-keygen", "-lf", "/etc/ssh/host_key").stdout for host in HOSTS}
    spaces = {lab.on(host, "readlink", "/proc/1/ns/net").stdout for host in HOSTS}
    assert len(keys) == len(spaces) == 3
    assert str(Path("/proc/self/ns/net").readlink()) not in {space.strip() for space in spaces}
    assert all("default" not in lab.on(host, "ip", "route").stdout for host in HOSTS)
    lab.on("lab01", "touch", "/usr/local/only-here")
    assert lab.on("lab02", "ls", "/usr/local/only-here", check=False).returncode != 0
    assert not Path("/usr/local/only-here").exists()
    lab.on("lab01", "rm", "/usr/local/only-here")


def test_an_account_that_is_missing_stops_before_anything_is_done(desk: Desk) -> None:
    desk.clear()
    done = desk.play("install.yml", bundle="../class.tar.gz", members=["grace", "nobody-of-that-name"])
    assert done.code == 2
    assert "nobody-of-that-name" in done.said
    assert done.of("changed") == [0, 0, 0]
    assert {host: written(desk, host) for host in HOSTS} == desk.before


def test_looking_first_changes_nothing_and_installing_twice_changes_once(desk: Desk) -> None:
    desk.clear()
    looked = desk.install("--check")
    assert looked.code == 0, looked.said
    assert looked.of("changed") == [1, 1, 1]
    assert {host: written(desk, host) for host in HOSTS} == desk.before
    desk.whole = None
    assert desk.install().of("changed") == [2, 2, 2]
    desk.whole = True
    for host in HOSTS:
        assert "jitterlab" in desk.lab.ssh(host, "grace", "id -nG").stdout.split()
        assert desk.lab.ssh(host, "grace", "jitter-workshop class turn").stdout == "No one has the turn.\n"
    after = {host: written(desk, host) for host in HOSTS}
    again = desk.install()
    assert again.code == 0, again.said
    assert again.of("changed") == [0, 0, 0]
    assert {host: written(desk, host) for host in HOSTS} == after
    assert desk.install("--check").of("changed") == [0, 0, 0]


def test_another_class_file_takes_the_place_of_the_first(hosts: Desk) -> None:
    hosts.whole = None
    other = hosts.bundle("other.tar.gz", minutes=6)
    try:
        assert hosts.install(bundle=other).of("changed") == [1, 1, 1]
        assert all("longest_turn_minutes = 6" in class_file(hosts, host) for host in HOSTS)
        assert hosts.install(bundle=other).of("changed") == [0, 0, 0]
    finally:
        (hosts.folder / "other.tar.gz").unlink()


def test_a_check_names_each_problem_with_its_machine(hosts: Desk) -> None:
    assert hosts.play("check.yml").code == 0
    hosts.whole = None
    hosts.lab.on("lab01", "rm", "/usr/local/bin/jitter-workshop")
    hosts.lab.on("lab02", "chmod", "666", "/etc/jitter-workshop/class.toml")
    done = hosts.play("check.yml")
    assert done.code == 2
    assert done.of("failed") == [1, 1, 0]
    assert "the tool is not here" in done.said
    assert "/etc/jitter-workshop/class.toml can be written by others" in done.said
    assert hosts.play("remove.yml", "--limit", "lab01").code == 2, "half a class host is not passed over"
    assert hosts.install().of("changed") == [1, 1, 0]
    assert hosts.play("check.yml").code == 0


def test_results_of_students_are_gathered_and_a_silent_machine_is_shown_as_silent(hosts: Desk) -> None:
    measured = hosts.lab.ssh("lab01", "grace", "jitter-workshop measure --duration 0.5 --label first")
    assert "first" in measured.stdout
    everybody = hosts.play("gather.yml")
    assert everybody.code == 0, everybody.said
    assert everybody.of("changed") == [0, 0, 0]
    with silent(hosts, "lab03"):
        done = hosts.play("gather.yml")
        assert done.code == 4
        assert done.of("unreachable") == [0, 0, 1]
    folder = hosts.folder / "ansible" / "gathered"
    assert {path.name for path in folder.iterdir()} == set(HOSTS)
    assert list((folder / "lab03").iterdir()) == [], "what was gathered before is not shown as news"
    assert folder.joinpath("lab01").stat().st_mode & 0o777 == 0o700
    status = json.loads((folder / "lab01" / "status.json").read_text())
    assert status["host"]
    collected = hosts.workshop("class", "collect", "gathered", cwd=folder.parent)
    assert collected.returncode == 1
    assert re.search(r"^lab03: .*silent", collected.stdout, re.MULTILINE)
    assert "grace" in collected.stdout
    found = json.loads(hosts.workshop("class", "collect", "gathered", "--json", cwd=folder.parent).stdout)
    assert [row["host"] for row in found["fleet"]] == list(HOSTS)
    assert [bool(row["error"]) for row in found["fleet"]] == [False, False, True]
    assert {check["id"]: check["state"] for check in status["checks"]} == found["fleet"][0]["checks"]
    assert [bool(host["error"]) for host in found["hosts"]] == [False, False, True]
    (student,) = found["students"]
    assert (student["id"], student["host"], student["last_run"]["label"]) == ("grace", "lab01", "first")
    table = hosts.workshop("class", "collect", "gathered", "--csv", cwd=folder.parent).stdout
    assert {row["user"] for row in csv.DictReader(table.splitlines())} <= {"grace"}


def test_a_message_reaches_every_machine(hosts: Desk) -> None:
    """Each kind of it; what makes no sense reaches none."""

    def heard(command: str) -> list[dict[str, Any]]:
        return [json.loads(hosts.lab.ssh(host, "grace", command).stdout) for host in HOSTS]

    def banners() -> list[dict[str, Any]]:
        return heard(f"cat {BANNER}")

    words = 'it\'s "five" minutes; $HOME'
    assert hosts.play("say.yml", chapter="pinning", step="compare", words=words).of("changed") == [1, 1, 1]
    said = [(one["by"], one["chapter"], one["step"], one["text"]) for one in banners()]
    assert said == [(INSTRUCTOR, "pinning", "compare", words)] * 3
    for wrong in ({}, {"say": "bogus"}, {"say": "freeze", "words": "x"}, {"chapter": "bogus"}, {"step": "look"}):
        done = hosts.play("say.yml", **wrong)
        assert (done.code, done.of("changed")) == (2, [0, 0, 0]), wrong
        assert done.of("failed") == [1, 1, 1]
    assert [one["text"] for one in banners()] == [words] * 3
    assert hosts.play("say.yml", "-b", words="later").of("changed") == [1, 1, 1]
    assert [(one["by"], one["text"]) for one in banners()] == [("root", "later")] * 3
    assert hosts.play("say.yml", say="clear").code == 0
    assert [hosts.lab.ssh(host, "grace", f"test -e {BANNER}", check=False).returncode for host in HOSTS] == [1] * 3
    for say, frozen in (("freeze", True), ("thaw", False)):
        assert hosts.play("say.yml", say=say).code == 0
        assert [one["frozen"] for one in heard("jitter-workshop class turn --json")] == [frozen] * 3


def test_a_service_that_cannot_answer_is_told_and_the_rest_gathered(hosts: Desk) -> None:
    hosts.lab.on("lab02", "mv", "/var/lib/jitter-workshop-board", "/var/lib/elsewhere")
    try:
        done = hosts.play("gather.yml", into="others")
    finally:
        hosts.lab.on("lab02", "mv", "/var/lib/elsewhere", "/var/lib/jitter-workshop-board")
    assert done.code == 2
    assert done.of("failed") == [0, 1, 0]
    assert "board" in done.said.partition("Say what was not answered")[2]
    others = hosts.folder / "ansible" / "others"
    assert sorted(f"{path.parent.name}/{path.name}" for path in others.rglob("*.json")) == [
        "lab01/board.json",
        "lab01/status.json",
        "lab02/status.json",
        "lab03/board.json",
        "lab03/status.json",
    ]


def test_removing_leaves_nothing(hosts: Desk) -> None:
    assert hosts.lab.ssh("lab02", "alan", "jitter-workshop measure --duration 0.5").returncode == 0
    assert all(written(hosts, host) != hosts.before[host] for host in HOSTS)
    hosts.whole = None
    done = hosts.play("remove.yml")
    assert done.code == 0, done.said
    assert done.of("changed") == [1, 1, 1]
    for host in HOSTS:
        assert written(hosts, host) == hosts.before[host]
        assert "jitterlab" not in hosts.lab.on(host, "cat", "/etc/passwd", "/etc/group", "/etc/gshadow").stdout
        assert "jitter_workshop" not in hosts.lab.on(host, "ps", "-eo", "args").stdout
    again = hosts.play("remove.yml")
    assert again.code == 0
    assert again.of("changed") == [0, 0, 0]
    hosts.whole = False


@pytest.mark.parametrize(
    "command",
    [
        ("ansible-lint", "--offline", "--profile", "production", "--strict", "."),
        ("yamllint", "--strict", "-d", "{extends: default, rules: {line-length: {max: 120}}}", "."),
    ],
    ids=["ansible-lint", "yamllint"],
)
def test_linters_find_nothing(ansible: Path, command: tuple[str, ...], tmp_path: Path) -> None:
    program = shutil.which(command[0], path=f"{ansible}{os.pathsep}{os.environ.get('PATH', '')}")
    if program is None:
        pytest.skip(f"there is no {command[0]}")
    shutil.copytree(ASSETS, tmp_path / "ansible")
    env = {**os.environ, "ANSIBLE_HOME": f"{tmp_path}/home", "PATH": f"{ansible}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        (program, *command[1:]), cwd=tmp_path / "ansible", env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


def written(desk: Desk, host: str) -> dict[str, str]:
    """Return what a machine has written, without what its system writes when somebody logs in or an account is made."""
    return {path: what for path, what in desk.lab.written(host).items() if not _SYSTEMS_OWN.fullmatch(path)}


def class_file(desk: Desk, host: str) -> str:
    return desk.lab.on(host, "cat", "/etc/jitter-workshop/class.toml").stdout
