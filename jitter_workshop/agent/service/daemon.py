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


def reset_inherited_settings(first_to_close: int) -> None:
    """Reset settings from the parent process that could slow, block or end this process (execve(2)).

    Resource limits, priority, timers and signal handling are reset. Afterwards:

    - Python writes no compiled files.
    - All descriptors from ``first_to_close`` on are closed.
    - The current folder is ``/``.
    - The umask is 022.
    - Signals from a terminal are ignored.
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


def run_service(called: str, words: list[str], ways: Mapping[str, Callable[[], None]]) -> int:
    """Run the service with the command line ``words``, and return the exit code.

    ``ways``: command line → function to run. ``called``: the service's name in messages. The exit code is 2 if the
    service could not begin, else 0. With exit code 2, standard error has one sentence with the reason.
    """
    from jitter_workshop.errors import UsageError, WorkshopError
    from jitter_workshop.model.text import MESSAGE, clean

    try:
        chosen = ways.get(" ".join(words))
        if chosen is None:
            raise UsageError(f"the {called} takes no arguments except {' and '.join(filter(None, ways))}")
        chosen()
    except WorkshopError as error:
        _set_exit_deadline()
        sys.stderr.write(f"jitter-workshop {called}: {clean(error.sentence(), MESSAGE)}\n")
        return 2
    return 0


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """If the body raises a WorkshopError, send it to the caller on the socket. Then raise it again.

    A caller on a socket cannot read this process's standard error.
    """
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
    """End this process within a few seconds, even if a full pipe blocks its output."""
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
