"""Identify the caller of the agent by the kernel or by sudo, never by the caller's own words.

For a socket, the kernel names the user (SO_PEERCRED, unix(7)). Otherwise sudo, pkexec or doas names the user in an
environment variable.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from jitter_workshop.agent.policy import Member
from jitter_workshop.errors import HostError, reason
from jitter_workshop.host.classfile import ASK_TO_JOIN, GROUP, MAX_BYTES, ClassFile, parse_class
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.text import ID, clean
from jitter_workshop.paths import CLASS_FILE

_BETWEEN = ("sudo", "doas", "pkexec", "su")
_MOST_BETWEEN = 4
"""Programs that give root's rights. They may be between a caller and its agent in the tree of processes. In search of
the caller, at most _MOST_BETWEEN of them are skipped."""


def read_class(top: str = "/", owner: int = 0) -> ClassFile | None:
    """Return the class that this host's class file describes; None if there is no file.

    Raise HostError if users other than root could have written the file. Raise UsageError if the file is invalid. An
    invalid file must not count as a missing file, because students would then have no limits.
    """
    path = os.path.join(top, CLASS_FILE.lstrip("/"))  # noqa: PTH118
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HostError(f"{CLASS_FILE} cannot be read: {reason(error)}") from error
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != owner or stat.S_IMODE(status.st_mode) & 0o022:
            raise HostError(
                f"users other than root can change {CLASS_FILE}", f"chown root {CLASS_FILE}; chmod 644 {CLASS_FILE}"
            )
        data = b""
        while len(data) <= MAX_BYTES and (more := os.read(file, MAX_BYTES)):
            data += more
        return parse_class(data, CLASS_FILE)
    finally:
        os.close(file)


def caller(descriptor: int, environment: Mapping[str, str]) -> int:
    """Return the user id of the caller on ``descriptor``; 0 if the caller is root.

    If SUDO_UID, PKEXEC_UID or DOAS_USER is set, this variable names the caller, even on a socket. For a socket, the
    kernel names the user at the other end. This user may not be the caller: the caller may pass sudo a socket whose
    other end is a service of root. So the kernel's answer is used only if no variable is set. If no variable is set and
    the descriptor is a pipe, the caller is root. Raise HostError if the caller cannot be identified.
    """
    for name in ("SUDO_UID", "PKEXEC_UID"):
        given = environment.get(name, "")
        if given.isascii() and given.isdigit() and len(given) < 11:
            return int(given)
        if name in environment:
            raise HostError(f"the value of {name} is not a user id")
    if user := environment.get("DOAS_USER"):
        import pwd

        try:
            return pwd.getpwnam(user).pw_uid
        except KeyError:
            raise HostError(f"there is no user {clean(user, ID)} here") from None
    return _peer(descriptor)[1] if stat.S_ISSOCK(os.fstat(descriptor).st_mode) else 0


def caller_pid(descriptor: int) -> int | None:
    """Return the process id of the caller; None if it is unknown.

    For a socket, the caller is the socket's peer. Otherwise the caller is the nearest ancestor process that is not sudo
    or a similar program. The id is for display only, not for access control.
    """
    if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        pid, _ = _peer(descriptor)
        return pid or None
    pid = os.getppid()
    for _ in range(_MOST_BETWEEN):
        words = HostRoot().text(f"/proc/{pid}/stat") or ""
        name, _, rest = words.partition("(")[2].rpartition(")")
        parent = rest.split()[1:2]
        if name not in _BETWEEN or not parent or not parent[0].isdigit():
            break
        pid = int(parent[0])
    return pid if pid > 1 else None


def _peer(descriptor: int) -> tuple[int, int]:
    """Return the process and the user of a socket's peer (SO_PEERCRED, unix(7))."""
    import socket
    import struct

    credentials = struct.Struct("3i")
    with socket.socket(fileno=os.dup(descriptor)) as peer:
        pid, uid, _ = credentials.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, credentials.size))
        return int(pid), int(uid)


def is_supported_fd(descriptor: int) -> bool:
    """Return True if ``descriptor`` is a pipe or a socket.

    Regular files are not supported, because a caller's own file system (FUSE) could delay each write.
    """
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def member(uid: int, described: ClassFile) -> Member:
    """Return the member of the class who has the user id ``uid``. Raise HostError if the user is not in the class."""
    import pwd

    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        raise HostError(
            f"this machine has no name for user id {uid}", "ask the administrator of this machine"
        ) from None
    instructor = described.instructs(user)
    if not instructor and uid not in uids_of(GROUP):
        raise HostError(f"{clean(user, ID)} is not in the group {GROUP}", ASK_TO_JOIN)
    return Member(uid, user, instructor, () if instructor else described.allowed(user), described)


def uids_of(group: str) -> frozenset[int]:
    """Return the user ids of a group's members; an empty set for an unknown group.

    The members include the users whose primary group is this group. The service user, whose name is the group's name,
    is not included.
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
