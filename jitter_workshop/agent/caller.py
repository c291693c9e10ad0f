"""Identify the caller and say what the class lets them do. The identity comes from the kernel or from sudo, never from
the caller.

The kernel gives it for a socket (SO_PEERCRED, unix(7)); sudo, root's own program, gives it as SUDO_UID. Modules that
only a class host needs are loaded only there.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping

from jitter_workshop.agent.policy import host_for
from jitter_workshop.errors import HostError, UsageError, WorkshopError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Change, Refused, Wanted
from jitter_workshop.model.classfile import ANY, GROUP, MAX_BYTES, ClassFile
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import clean
from jitter_workshop.paths import CLASS_FILE
from jitter_workshop.tuning.reasons import reason
from jitter_workshop.tuning.tunables.registry import find


@dataclass(frozen=True, slots=True)
class Member:
    """Describe a person in a class (a course). ``may_apply``: the tunable ids a student may apply, or ``*``."""

    uid: int
    user: str
    instructor: bool
    may_apply: tuple[str, ...]


def read_class(top: str = "/", owner: int = 0) -> ClassFile | None:
    """Return the class of this host, None if it is not a class host.

    Raises HostError for a file that users other than root could have written, UsageError for one that makes no sense:
    if such a file were ignored, nothing would be limited.
    """
    path = os.path.join(top, CLASS_FILE.lstrip("/"))  # noqa: PTH118
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HostError(f"{CLASS_FILE} cannot be read: {reason(error)}") from error
    from jitter_workshop.host.classfile import parse_class

    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != owner or stat.S_IMODE(status.st_mode) & 0o022:
            raise HostError(f"{CLASS_FILE} is not root's alone", f"chown root {CLASS_FILE}; chmod 644 {CLASS_FILE}")
        data = b""
        while len(data) <= MAX_BYTES and (more := os.read(file, MAX_BYTES)):
            data += more
        return parse_class(data, CLASS_FILE)
    finally:
        os.close(file)


def caller(descriptor: int, environment: Mapping[str, str]) -> int:
    """Return the user id of the caller on ``descriptor``; 0 for root's own caller. Raises HostError.

    SUDO_UID, PKEXEC_UID and DOAS_USER come before the socket's peer: the caller chose ``descriptor``, and may have
    connected it to a service of root's.
    """
    for name in ("SUDO_UID", "PKEXEC_UID"):
        given = environment.get(name, "")
        if given.isascii() and given.isdigit() and len(given) < 11:
            return int(given)
        if name in environment:
            raise HostError(f"{name} is not a user id")
    if user := environment.get("DOAS_USER"):
        import pwd

        try:
            return pwd.getpwnam(user).pw_uid
        except KeyError:
            raise HostError(f"there is no user {clean(user, 40)} here") from None
    if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        import socket
        import struct

        credentials = struct.Struct("3i")
        with socket.socket(fileno=os.dup(descriptor)) as peer:
            _, uid, _ = credentials.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, credentials.size))
            return int(uid)
    return 0


def is_supported_fd(descriptor: int) -> bool:
    """Check that select(2) can wait for a write to ``descriptor``: a pipe or a socket.

    A file may lie on a file system of the caller's own (FUSE), where a write takes as long as they like.
    """
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def member(uid: int, described: ClassFile) -> Member:
    """Return the member that a user id is in a class. Raises HostError if it is not in the class."""
    import pwd

    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        raise HostError(f"user {uid} has no name here", "ask the administrator of this machine") from None
    instructor = described.instructs(user)
    if not instructor and uid not in uids_of(GROUP):
        raise HostError(f"{clean(user, 40)} is not in the group {GROUP}", "ask the instructor, and log in again")
    return Member(uid, user, instructor, () if instructor else described.allowed(user))


def uids_of(group: str) -> frozenset[int]:
    """Return the user ids of a group's members; an empty set if there is no such group.

    Users with this primary group are included, except the service user of the same name.
    """
    import grp
    import pwd

    try:
        found = grp.getgrnam(group)
    except KeyError:
        return frozenset()
    uids = {entry.pw_uid for entry in pwd.getpwall() if entry.pw_gid == found.gr_gid and entry.pw_name != group}
    for name in found.gr_mem:
        try:
            uids.add(pwd.getpwnam(name).pw_uid)
        except KeyError:
            continue
    return frozenset(uids)


def check_cpus(who: Member, described: ClassFile, cpus: str) -> None:
    """Check that a student asks for the class's hot CPUs. Raises UsageError, HostError."""
    if who.instructor:
        return
    try:
        asked = CpuSet.parse_list(cpus)
    except ValueError:
        raise UsageError("the hot CPUs are not a list of CPUs") from None
    if asked != described.hot_cpus:
        raise HostError(f"the hot CPUs of this class are {described.hot_cpus}, not {asked or 'none'}")


def check_asked(who: Member, described: ClassFile, wanted: tuple[Wanted, ...], cpus: str) -> None:
    """Check that a student asks only for the class's hot CPUs and for tunables that the class lets them apply. Raises
    UsageError, HostError."""
    check_cpus(who, described, cpus)
    if who.instructor:
        return
    for one in wanted:
        if find(one.id).when == "boot":
            raise HostError(f"{one.id} is for the next boot: only an instructor may make boot changes")
        if ANY not in who.may_apply and one.id not in who.may_apply:
            raise HostError(f"you may not apply {one.id} in this class", "ask the instructor")


def permitted_to(who: Member, changes: tuple[Change, ...] | list[Change]) -> tuple[list[Change], list[Refused]]:
    """Return the changes that this caller may make, and the refused ones with the reason."""
    allowed: list[Change] = []
    refused: list[Refused] = []
    for change in changes:
        why = "" if who.instructor else _student_may_not(who, change)
        if why:
            refused.append(Refused(change.tunable, change.path, why))
        else:
            allowed.append(change)
    return allowed, refused


def housekeeping(root: HostRoot, described: ClassFile) -> CpuSet:
    """Return the CPUs of this class that are not hot. Raises HostError if a hot one is not online."""
    return host_for(root, str(described.hot_cpus)).housekeeping


def keep_to_housekeeping(root: HostRoot, described: ClassFile) -> None:
    """Move this process to the housekeeping CPUs, if that is possible, on whatever CPU its caller started it."""
    with contextlib.suppress(WorkshopError, OSError):
        os.sched_setaffinity(0, set(housekeeping(root, described)))


def _student_may_not(who: Member, change: Change) -> str:
    if change.when not in ("run", "runtime"):
        return "only an instructor may make boot changes"
    if change.risk == "high" and change.tunable not in who.may_apply:
        return "it has a high risk, and the class file does not allow it to you: ask the instructor"
    return ""
