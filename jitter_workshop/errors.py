"""One family of errors: what went wrong and what to do, in one sentence each.

Every error that a user can cause or meet is a :class:`WorkshopError`. ``commands`` turns it into one line on stderr
and exit code 2; the screen turns it into a dialog that can be copied. Nothing else decides exit codes.
"""

from __future__ import annotations


class WorkshopError(Exception):
    """Something was not done. ``message`` says what, ``advice`` (may be empty) what to do about it."""

    title = "Not done"

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    def sentence(self) -> str:
        """The one line for stderr: ``message; advice``."""
        return f"{self.message}; {self.advice}" if self.advice else self.message


class UsageError(WorkshopError):
    """The command line, a number or a name makes no sense."""

    title = "That cannot be asked"


class HostError(WorkshopError):
    """This host cannot do what was asked (missing CPU, no rights, no such file)."""

    title = "Not available on this host"


class BusyError(WorkshopError):
    """Somebody else measures on this host."""

    title = "Someone else is measuring"


class WaitStopped(BusyError):
    """Whoever queued behind somebody else's run does not want to wait any longer. Nothing was measured."""

    title = "Stopped waiting"


class MeasureError(WorkshopError):
    """The measuring child failed or died."""

    title = "The measurement stopped"


class SessionError(WorkshopError):
    """A session or run could not be read, written or found."""

    title = "Session"


class LessonError(WorkshopError):
    """A lesson file is wrong; ``message`` starts with ``file:line:``."""

    title = "Lesson"
