"""Run a service's process: reset the environment in which the process was started, and tell the caller if the service
cannot begin."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Mapping

_IGNORED = ("SIGINT", "SIGHUP", "SIGPIPE", "SIGTSTP", "SIGTTIN", "SIGTTOU")
_NOT_ENDING = ("SIGXFSZ",)
"""Signals that Python itself ignores. Without the signal, a failed write raises an error."""
_NONE = resource.RLIM_INFINITY
_LIMITS = dict.fromkeys(("CPU", "FSIZE", "DATA", "STACK", "AS", "NPROC"), _NONE) | {"NOFILE": 4096, "CORE": 0}
_WORDS_S = 5


def leave(first_to_close: int) -> None:
    """Reset everything inherited that could slow this process down, block its signals or end it.

    Limits, timers, blocked and ignored signals and a low priority are reset (execve(2)). Afterwards:

    - No compiled files are written.
    - No descriptor from ``first_to_close`` on is open.
    - The folder is ``/``.
    - New files have mode 0644.
    - A terminal's signals are ignored.
    """
    sys.dont_write_bytecode = True
    os.umask(0o022)
    os.chdir("/")
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is ``descriptor``
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))  # noqa: PTH208
    os.closerange(first_to_close, highest + 1)
    with contextlib.suppress(PermissionError):  # already a process group leader, as under sudo
        os.setsid()  # a terminal's signals do not reach a new session
    for name in _IGNORED:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    _signals()
    _limits()


def run(called: str, words: list[str], ways: Mapping[str, Callable[[], None]]) -> int:
    """Run the function that ``ways`` gives for the command line ``words``. Return the exit code: 0, or 2 if this
    service could not begin.

    With exit code 2, standard error has one sentence with the reason. ``called``: the service's name in messages.
    """
    from jitter_workshop.errors import UsageError, WorkshopError
    from jitter_workshop.model.text import clean

    try:
        chosen = ways.get(" ".join(words))
        if chosen is None:
            raise UsageError(f"the {called} takes no arguments except {' and '.join(filter(None, ways))}")
        chosen()
    except WorkshopError as error:
        _set_exit_deadline()
        sys.stderr.write(f"jitter-workshop {called}: {clean(error.sentence(), 1000)}\n")
        return 2
    return 0


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Tell the caller on a socket why the connection cannot begin, if the body raises an error. Such a caller does not
    see standard error."""
    import stat

    from jitter_workshop.agent import protocol
    from jitter_workshop.errors import WorkshopError

    try:
        yield
    except WorkshopError as error:
        _set_exit_deadline()
        if stat.S_ISSOCK(os.fstat(0).st_mode):
            with contextlib.suppress(OSError):
                os.write(1, protocol.failure(None, error))
        raise


def _set_exit_deadline() -> None:
    """End this process within a few seconds in any case: the caller may have given it a full pipe, and the last message
    would block there."""
    signal.alarm(_WORDS_S)


def _signals() -> None:
    for number in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        signal.setitimer(number, 0)
    kept = {getattr(signal, name) for name in (*_IGNORED, *_NOT_ENDING)}
    for number in signal.valid_signals() - kept:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _limits() -> None:
    """Reset the resource limits and the priority of this process, as far as its rights allow."""
    for name, limit in _LIMITS.items():
        which = getattr(resource, f"RLIMIT_{name}")
        try:
            resource.setrlimit(which, (limit, limit))
        except (OSError, ValueError):  # without CAP_SYS_RESOURCE the hard limit is the highest
            _, hard = resource.getrlimit(which)
            resource.setrlimit(which, (hard, hard))
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    for file in ("oom_score_adj", "autogroup"):
        with contextlib.suppress(OSError, ValueError), open(f"/proc/self/{file}", "r+") as out:  # noqa: PTH123
            if file == "autogroup" or int(out.read()) > 0:
                out.seek(0)
                out.write("0")
