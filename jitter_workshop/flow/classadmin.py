"""Making a class host, looking whether it is one as it should be, and taking it away again."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

from jitter_workshop.classroom import hoststeps
from jitter_workshop.classroom.hoststeps import Step, Wish, leftovers
from jitter_workshop.errors import HostError, UsageError, WorkshopError
from jitter_workshop.flow.changing import standing
from jitter_workshop.flow.classhost import class_host, read_turns
from jitter_workshop.flow.hotcpus import choose_hot
from jitter_workshop.host.classfile import parse_class
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.topology import read_topology
from jitter_workshop.model.classfile import GROUP, MAX_BYTES, is_name
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import clean
from jitter_workshop.paths import CLASS_FILE, RUN_DIR
from jitter_workshop.tuning.journal import STATE_DIR

__all__ = ["GROUP", "Problem", "bundle", "check", "init", "leftovers", "open_steps", "remove", "wish"]

_TEMPLATE = """\
# What an instructor decides about this shared machine; docs/teaching.md says what each line does.
name = "{name}"
hot_cpus = "{hot}"
instructors = [{instructors}]
longest_turn_minutes = 4
preset = "quick"
chapters = []

[may_apply]
students = ["*"]
"""


@dataclass(frozen=True, slots=True)
class Problem:
    """``fix``: what to do about it."""

    what: str
    fix: str


def wish(file: Path | None) -> Wish:
    """What a class host is made with: the class file that is given, or is there, or one for this host as it is. Raises
    UsageError for a file that makes no sense, HostError where this host has no CPU to spare."""
    data = _class_data(file)
    described = parse_class(data, str(file) if file is not None else CLASS_FILE)
    topology = read_topology(HostRoot())
    missing = described.hot_cpus - topology.online
    if missing:
        raise UsageError(f"hot_cpus names CPU {missing}, which is not online here", f"online: {topology.online}")
    return Wish(data, topology.online - described.hot_cpus, hoststeps.runs_systemd())


def open_steps(asked: Wish) -> tuple[tuple[Step, str], ...]:
    """The steps that have something to do, each with what is wrong."""
    return tuple((step, why) for step in hoststeps.steps(asked) if (why := _problem(step)))


def init(asked: Wish) -> Iterator[Step]:
    """Do what is missing, step by step; each is given before it is done. Raises HostError in the words of the step that
    failed; what was done before it stays, and ``remove`` undoes it."""
    _only_root()
    for step in hoststeps.steps(asked):
        if not _problem(step):
            continue
        yield step
        try:
            step.do()
        except OSError as error:
            raise HostError(f"{step.what}: {error.strerror or error}") from error
        if why := _problem(step):
            raise HostError(f"{step.what}: done, and still {why}")


def check() -> tuple[Problem, ...]:
    """What is wrong with this class host. Raises HostError where it is none."""
    try:
        if class_host() is None:
            raise HostError("this is no class host", "'sudo jitter-workshop class init' makes it one")
        asked = wish(None)
    except UsageError as error:
        return (Problem(error.message, f"edit {CLASS_FILE}"),)
    found = [Problem(why, "sudo jitter-workshop class init") for _, why in open_steps(asked)]
    state = read_turns()
    if state.trouble:
        found.append(
            Problem(f"the machine is not as it was: {clean(state.trouble, 200)}", "look, then 'class turn thaw'")
        )
    if not asked.housekeeping:
        found.append(Problem("every CPU is hot: logins disturb whoever measures", f"name fewer in {CLASS_FILE}"))
    return tuple(found)


def bundle(out: Path, file: Path | None) -> None:
    """Write the archive that makes a class host without the internet. Raises UsageError, HostError."""
    from jitter_workshop.classroom import bundle as archive

    data = _class_data(file)
    parse_class(data, str(file) if file is not None else CLASS_FILE)
    archive.write(out, data)


def remove() -> tuple[str, ...]:
    """Undo everything, the last step first. Gives what is left all the same, in words; () for nothing. Raises HostError
    where something that was applied still stands."""
    _only_root()
    if standing(HostRoot()):
        raise HostError("something that was applied still stands on this host", "'sudo jitter-workshop restore' first")
    from jitter_workshop.agent.turngroup import TurnGroup
    from jitter_workshop.tuning.writer import HostWriter

    left: list[str] = []
    try:
        asked = wish(None)
    except WorkshopError:
        asked = Wish(b"", CpuSet.of([0]), hoststeps.runs_systemd())
    for step in reversed(hoststeps.steps(asked)):
        try:
            step.undo()
        except (OSError, HostError) as error:
            left.append(f"{step.what}: {clean(error, 200)}")
    group = TurnGroup(HostRoot(), HostWriter())
    with contextlib.suppress(OSError):
        left += [why for why in (group.close(None, ""), group.release()) if why]
    for folder in (RUN_DIR, STATE_DIR):
        shutil.rmtree(folder, ignore_errors=True)
    return (*left, *(f"{path} is still there" for path in leftovers()))


def _class_data(file: Path | None) -> bytes:
    place = file if file is not None else Path(CLASS_FILE)
    try:
        with place.open("rb") as source:
            return source.read(MAX_BYTES + 1)
    except FileNotFoundError:
        if file is not None:
            raise UsageError(f"there is no {clean(file, 200)}") from None
    except OSError as error:
        raise UsageError(f"{clean(place, 200)} cannot be read: {error.strerror}") from error
    hot = choose_hot(HostRoot(), None).cpus
    who = os.environ.get("SUDO_USER", "")
    named = f'"{who}"' if is_name(who) and who != "root" else ""
    host = clean(socket.gethostname(), 40).replace('"', "").replace("\\", "") or "this host"
    return _TEMPLATE.format(name=f"Class on {host}", hot=hot, instructors=named).encode()


def _problem(step: Step) -> str:
    try:
        return step.problem()
    except (OSError, HostError) as error:
        return clean(error, 200)


def _only_root() -> None:
    if os.geteuid() != 0:
        raise HostError("a class host is made by root", "use sudo")
