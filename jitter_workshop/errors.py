"""Define the workshop's errors, and words for the kernel's error numbers. Each error says in one sentence what went
wrong and what to do.

Each error that a user can cause or see is a :class:`WorkshopError`. On the command line an error becomes one line on
stderr and exit code 2; on the screen, a dialog with text that can be copied.
"""

from __future__ import annotations

import errno
import os

_LONGEST = 300
"""The largest length of a reason that this module did not write itself."""


class WorkshopError(Exception):
    """Report that something was not done. ``message``: what was not done. ``advice``: what the user can do; may be
    empty."""

    title = "Not done"

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    def sentence(self) -> str:
        """Return the line for stderr: ``message; advice``."""
        return f"{self.message}; {self.advice}" if self.advice else self.message


class UsageError(WorkshopError):
    """Report that the command line, a number or a name is invalid."""

    title = "Invalid input"


class HostError(WorkshopError):
    """Report that this host cannot do what was asked (missing CPU, no rights, no such file)."""

    title = "Not available on this host"


class HeldError(HostError):
    """Report that another program holds this host's settings: it changes them now, or it has changed them and keeps
    them for a while."""


class BusyError(WorkshopError):
    """Report that someone else is measuring on this host."""

    title = "Someone else is measuring"


class WaitStopped(BusyError):
    """Report that the user stopped waiting for someone else's run. Nothing was measured."""

    title = "Stopped waiting"


class MeasureError(WorkshopError):
    """Report that the measuring child failed or died."""

    title = "The measurement stopped"


class SessionError(WorkshopError):
    """Report that a session or run could not be read, written or found."""

    title = "Session"


class LessonError(WorkshopError):
    """Report an error in a lesson file; ``message`` starts with ``file:line:``."""

    title = "Lesson"


_WORDS = {
    errno.EACCES: "not permitted",
    errno.EPERM: "not permitted, even to root (a lockdown or a container forbids this, or the value is fixed at boot)",
    errno.EBUSY: "the kernel is using this file or device now",
    errno.EINVAL: "the kernel does not accept this value here",
    errno.EIO: "the kernel does not move or set this device or interrupt (perhaps only the kernel manages it)",
    errno.EROFS: "the filesystem is mounted read-only",
    errno.ENODEV: "the device does not offer this setting",
    errno.ENXIO: "the device does not offer this setting",
    errno.ENOENT: "the file or folder is no longer there",
    errno.ESRCH: "no longer exists",
    errno.EOPNOTSUPP: "this kernel or device does not support this setting",
    errno.ERANGE: "the value is out of range",
    errno.ENOSPC: "no space is left",
    errno.EAGAIN: "the kernel could not do this now; try again",
    errno.ETIMEDOUT: "the kernel did not answer in time",
    errno.EFBIG: "the kernel does not accept this value here",
    errno.EDOM: "the value is out of range",
    errno.ELOOP: "the path contains a symbolic link",
    errno.ENOTEMPTY: "the folder or group is not empty",
}


def reason(error: OSError) -> str:
    """Return a description of why a call of the kernel failed. If this module has no description for the error number,
    return its name, such as ``ENOENT``.
    """
    number = error.errno
    if number is None:
        return str(error)[:_LONGEST] or "it failed"
    if error.strerror and error.strerror != os.strerror(number):
        return error.strerror[:_LONGEST]  # the setting's kind has a more exact text
    name = errno.errorcode.get(number, str(number))
    words = _WORDS.get(number)
    return f"{words} ({name})" if words else f"the kernel says {name}"
