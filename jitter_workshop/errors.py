"""Define one family of errors; each says in one sentence what went wrong and what to do.

Every error that a user can cause or meet is a :class:`WorkshopError`. ``commands`` turns it into one line on stderr and
exit code 2; the screen turns it into a dialog that can be copied. Nothing else decides exit codes.
"""

from __future__ import annotations


class WorkshopError(Exception):
    """Report that something was not done. ``message`` says what; ``advice`` (may be empty) says what to do about it."""

    title = "Not done"

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    def sentence(self) -> str:
        """Return the one line for stderr: ``message; advice``."""
        return f"{self.message}; {self.advice}" if self.advice else self.message


class UsageError(WorkshopError):
    """Report that the command line, a number or a name makes no sense."""

    title = "Invalid input"


class HostError(WorkshopError):
    """Report that this host cannot do what was asked (missing CPU, no rights, no such file)."""

    title = "Not available on this host"


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
