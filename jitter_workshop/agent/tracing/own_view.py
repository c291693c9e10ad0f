"""Give this process its own view of the kernel's trace, for a host on which the trace is not mounted.

The view is a mount in a mount namespace of this process and its children. The host does not see the mount. The mount
ends with these processes (mount_namespaces(7)).
"""

from __future__ import annotations

import contextlib
import os

from jitter_workshop.agent.tracing.instances import FOLDERS, mount_command, namespace_differs
from jitter_workshop.errors import reason
from jitter_workshop.host.root import HostRoot, line_value
from jitter_workshop.tuning.writer import HostWriter

_CLONE_NEWNS = 0x00020000
_MS_REC, _MS_SLAVE = 0x4000, 0x80000
_QUIET = 0x2 | 0x4 | 0x8
"""The mount flags MS_NOSUID, MS_NODEV and MS_NOEXEC."""
_MNT_DETACH = 0x2
_FIRST_USERS = "user:[4026531837]"
"""The first user namespace (``PROC_USER_INIT_INO``). A process in any other user namespace may not mount the trace."""
_SYS_ADMIN = 1 << 21


class OwnView:
    """Mount the kernel's trace for this process alone, until :meth:`close`. ``why_not``: the reason if the kernel
    refused, else ""."""

    def __init__(self, root: HostRoot, writer: HostWriter) -> None:
        self.mounted = False
        self.why_not = ""
        if writer.real and mount_command(root):
            try:
                _mount()
                self.mounted = True
            except (OSError, ImportError, AttributeError) as error:
                self.why_not = reason(error) if isinstance(error, OSError) else "Python cannot call the C library"

    def close(self) -> None:
        """Remove the agent's own mount of the trace. Other code must see only the mounts of the host."""
        if self.mounted:
            self.mounted = False
            with contextlib.suppress(OSError):
                _call("umount2", os.fsencode(FOLDERS[0]), _MNT_DETACH)


def can_be_had(root: HostRoot) -> bool:
    """Return True if the agent, as root, may mount the kernel's trace for itself.

    The kernel must have the trace. This process must be in the first user namespace, with CAP_SYS_ADMIN in its bounding
    set. A security module may still refuse the mount.
    """
    bounding = line_value(root.text("/proc/self/status"), "CapBnd").strip()
    known = (root.text("/proc/filesystems") or "").split()
    try:
        may = int(bounding or "0", 16) & _SYS_ADMIN
    except ValueError:
        return False
    return bool(may) and "tracefs" in known and not namespace_differs("user", _FIRST_USERS)


def _mount() -> None:
    """Leave the host's mount namespace, and mount the kernel's trace.

    New mounts of the host still appear in the new namespace. Mounts made in the new namespace do not appear on the
    host. Raise OSError on failure.
    """
    _call("unshare", _CLONE_NEWNS)
    _call("mount", b"none", b"/", None, _MS_REC | _MS_SLAVE, None)
    _call("mount", b"nodev", os.fsencode(FOLDERS[0]), b"tracefs", _QUIET, None)


def _call(name: str, *arguments: object) -> None:
    """Call a function of the C library by its name. Raise OSError on failure.

    Python has no function for mount(2). It has os.unshare only since version 3.12.
    """
    import ctypes

    given = [ctypes.c_ulong(one) if isinstance(one, int) else one for one in arguments]
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*given) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
