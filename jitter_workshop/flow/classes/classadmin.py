"""Set up this machine as a class host, check the setup, and undo it."""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import shutil
import socket
import stat
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path

from jitter_workshop.agent.turns.state_file import alive
from jitter_workshop.classroom import hoststeps, install
from jitter_workshop.classroom.hoststeps import HostChoices, HostStep, leftovers, open_steps
from jitter_workshop.course.loader import load_course
from jitter_workshop.errors import HostError, UsageError, WorkshopError
from jitter_workshop.flow.host_ops.agent_connection import standing_entries
from jitter_workshop.flow.host_ops.hotcpus import choose_hot
from jitter_workshop.flow.turns.classhost import read_turns
from jitter_workshop.host.classfile import ANY, GROUP, MAX_BYTES, STUDENTS, ClassFile, is_name, parse_class
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import ID, LABEL, PATH, REASON, called, clean
from jitter_workshop.paths import CLASS_FILE, RUN_DIR
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.journal import STATE_DIR
from jitter_workshop.tuning.tunables.registry import find_tunable

__all__ = [
    "GROUP",
    "ClassHostProblem",
    "HostStep",
    "bundle",
    "check_class_host",
    "doubts",
    "init",
    "remove_class_host",
    "to_do",
    "to_remove",
    "wish",
]

_INIT = "sudo jitter-workshop class init"
_FROM_ITS_SOURCE = "run 'class init' from the class's archive (install.py) or from the tool's source"


@dataclass(frozen=True, slots=True)
class ClassHostProblem:
    """Hold one problem of a class host. ``fix``: the way to solve it."""

    what: str
    fix: str


def wish(file: Path | None) -> HostChoices:
    """Return the settings of a class host from a class file. ``file``: None means the installed class file or, if there
    is none, new settings for this host. Raise UsageError if the file is invalid, HostError if this host cannot be a
    class host."""
    data = _class_data(file)
    described = _understood(data, file)
    topology = read_topology(HostRoot())
    missing = described.hot_cpus - topology.online
    if missing:
        raise UsageError(f"hot_cpus names CPU {missing}, which is not online", f"online: {topology.online}")
    housekeeping = Host(HostRoot(), described.hot_cpus, topology).housekeeping
    return HostChoices(data, housekeeping, hoststeps.booted_by_systemd(), install.interpreter())


def to_do(asked: HostChoices) -> tuple[tuple[HostStep, str], ...]:
    """Return the steps that this class host still needs, each with the problem that it solves. Raise HostError if the
    caller is not root."""
    _only_root()
    return open_steps(hoststeps.class_host_steps(asked))


def init(todo: tuple[tuple[HostStep, str], ...]) -> Iterator[HostStep]:
    """Do exactly the steps ``todo``, and yield each step before doing it. Raise HostError with the message of a step
    that fails. Earlier steps stay done; :func:`remove_class_host` undoes them."""
    _only_root()
    yield from hoststeps.do(tuple(step for step, _ in todo))


def check_class_host() -> tuple[ClassHostProblem, ...]:
    """Return the problems of this class host. Raise HostError if this host is no class host, or if the caller is not
    root."""
    _only_root()
    if not Path(CLASS_FILE).exists():
        if install.LAUNCHER in leftovers():
            return (ClassHostProblem(f"{CLASS_FILE} is missing", _INIT),)
        raise HostError("this is not a class host", f"'{_INIT}' makes it a class host")
    if install.runs_from() and (why := install.problem()):
        return (ClassHostProblem(why, _FROM_ITS_SOURCE),)  # a damaged installation cannot find the other problems
    try:
        asked = wish(None)
    except UsageError as error:
        return (ClassHostProblem(error.message, f"edit {CLASS_FILE}"),)
    except HostError as error:
        return (ClassHostProblem(error.message, error.advice),)
    found = [ClassHostProblem(why, _INIT) for step, why in open_steps(hoststeps.class_host_steps(asked)) if step.why()]
    state = read_turns()
    if state.trouble:
        found.append(
            ClassHostProblem(
                f"the machine was not restored completely: {clean(state.trouble, REASON)}",
                "check the machine, then allow new turns with 'class turn thaw'",
            )
        )
    return (*found, *doubts(asked))


def doubts(asked: HostChoices) -> tuple[ClassHostProblem, ...]:
    """Return one problem for each class file's setting that is probably wrong on this host. Raise UsageError if the
    file is invalid.
    """
    described = parse_class(asked.class_data, CLASS_FILE)
    hot = ClassHostProblem("every CPU is hot: logins disturb each measurement", f"set fewer hot_cpus in {CLASS_FILE}")
    return (*([hot] if not asked.housekeeping else ()), *_instructors(described), *_permitted(described))


def bundle(out: Path, file: Path | None) -> None:
    """Write an archive with which a class host can be set up without the internet. Raise UsageError if the class file
    is invalid, HostError if the archive cannot be written."""
    from jitter_workshop.classroom import bundle as archive

    data = _class_data(file)
    _understood(data, file)
    archive.write_bundle(out, data)


def to_remove() -> tuple[str, ...]:
    """Return the things that :func:`remove_class_host` would remove, in words. Raise HostError if there are such things
    and the caller is not root."""
    there = leftovers()
    if there:
        _only_root()
    if there and os.path.lexists(STATE_DIR):
        there = (*there, f"{STATE_DIR}: the journal of all changes, and the audit log of the class")
    return there


def remove_class_host() -> tuple[str, ...]:
    """Undo all steps of :func:`init`, the last step first. Return the things that could not be removed, in words. Raise
    HostError if a user has the turn, or if a setting of this tool is still applied."""
    _only_root()
    turn = read_turns().turn
    if turn is not None and alive(turn.agent):
        who = called(" and ".join(turn.people), LABEL)
        raise HostError(f"{who} has the turn", "wait, or end the turn: 'sudo jitter-workshop class turn end'")
    if standing_entries(HostRoot()):
        raise HostError(
            "a setting of this host is still changed", "restore the setting first: 'sudo jitter-workshop restore'"
        )
    from jitter_workshop.agent.turns.turn_cgroup import TurnGroup
    from jitter_workshop.tuning.writer import HostWriter

    # The undo needs only fixed places and names, not the present class file.
    left = list(hoststeps.undo(HostChoices(b"", CpuSet.of([0]), hoststeps.booted_by_systemd(), "")))
    group = TurnGroup(HostRoot(), HostWriter())
    ends: tuple[Callable[[], str], ...] = (lambda: group.close(None, ""), group.release)
    for end in ends:
        try:
            left.append(end())
        except (OSError, WorkshopError) as error:
            left.append(clean(error, REASON))
    for folder in (RUN_DIR, STATE_DIR):
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder)
    return (*filter(None, left), *(f"still exists: {one}" for one in leftovers()))


def _instructors(described: ClassFile) -> Iterator[ClassHostProblem]:
    """Yield a problem for each instructor who is not in the class's group. Only members of this group can use the
    services of the class."""
    try:
        group = grp.getgrnam(GROUP)
    except KeyError:
        return
    for name in described.instructors:
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            yield ClassHostProblem(
                f"{CLASS_FILE} names the instructor {name}, but this host has no such user",
                "add the user with useradd, or edit the file",
            )
            continue
        if user.pw_uid and user.pw_gid != group.gr_gid and name not in group.gr_mem:
            yield ClassHostProblem(f"the instructor {name} is not in the group {GROUP}", f"usermod -aG {GROUP} {name}")


def _permitted(described: ClassFile) -> Iterator[ClassHostProblem]:
    """Yield a problem for each name in ``may_apply`` that no user of this host has. If a user's name is misspelt, the
    entry has no effect. The rule for all students then applies to this user.
    """
    for name in described.may_apply:
        if name == STUDENTS:
            continue
        try:
            pwd.getpwnam(name)
        except KeyError:
            what = f"{CLASS_FILE} says what {name} may apply, but this host has no such user"
            yield ClassHostProblem(
                what, f"add the user with useradd, or edit the file: '{STUDENTS}' means all students"
            )


def _understood(data: bytes, file: Path | None) -> ClassFile:
    """Return the class that the text of a class file describes. Raise UsageError for an unknown chapter or tunable,
    because a misspelt name would have no effect. Also raise UsageError if students may apply a boot parameter.
    """
    where = clean(file, PATH) if file is not None else CLASS_FILE
    described = parse_class(data, where)
    known = [chapter.id for chapter in load_course().chapters]
    for chapter in described.chapters:
        if chapter not in known:
            raise UsageError(
                f"{where}: 'chapters' has '{chapter}', but there is no such chapter", f"use {', '.join(known)}"
            )
    for who, ids in described.may_apply.items():
        for one in ids:
            try:
                at_boot = one != ANY and find_tunable(one).when == "boot"
            except UsageError as error:
                raise UsageError(f"{where}: may_apply.{who}: {error.message}", error.advice) from error
            if at_boot:
                raise UsageError(
                    f"{where}: may_apply.{who} has {one}, but only instructors may make boot changes", f"remove {one}"
                )
    return described


def _class_data(file: Path | None) -> bytes:
    place = file if file is not None else Path(CLASS_FILE)
    try:
        # Read regular files only: a pipe would make us wait, and a device can give other bytes at each read.
        with os.fdopen(os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as source:
            if not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
                raise UsageError(f"{clean(place, PATH)} is not a file", "write the settings of the class into a file")
            return source.read(MAX_BYTES + 1)
    except FileNotFoundError:
        if file is not None:
            raise UsageError(f"there is no {clean(file, PATH)}") from None
    except OSError as error:
        raise UsageError(f"{clean(place, PATH)} cannot be read: {error.strerror}") from error
    online = read_topology(HostRoot()).online
    hot = choose_hot(HostRoot(), None).cpus
    if hot == online and len(online) > 1:
        hot = CpuSet.of(sorted(online)[1:])  # a housekeeping CPU has to serve forty logins
    who = os.environ.get("SUDO_USER", "")
    named = f'"{who}"' if is_name(who) and who != "root" else ""
    host = clean(socket.gethostname(), ID).replace('"', "").replace("\\", "") or "this host"
    template = resources.files("jitter_workshop.assets").joinpath("class", "class.toml").read_text("utf-8")
    return template.format(name=f"Class on {host}", hot=hot, instructors=named).encode()


def _only_root() -> None:
    if os.geteuid() != 0:
        raise HostError("only root can make a class host and check it", "use sudo")
