"""Test the start of a service: it drops what its parent process could have handed on to slow it down, to keep signals
from it, or to end it."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parent.parent.parent

CODE = """
import sys
sys.path.append(".")
from jitter_workshop.agent.service import daemon
daemon.reset_inherited_settings(3)
import json, os, resource, signal
print(json.dumps({
    "blocked": [int(one) for one in signal.pthread_sigmask(signal.SIG_BLOCK, ())],
    "ignored": [int(one) for one in signal.valid_signals() if signal.getsignal(one) == signal.SIG_IGN],
    "alarm": signal.getitimer(signal.ITIMER_REAL)[0],
    "limits": {name: resource.getrlimit(getattr(resource, "RLIMIT_" + name)) for name in sys.argv[1:]},
    "scheduler": os.sched_getscheduler(0),
    "nice": os.nice(0),
    "oom": int(open("/proc/self/oom_score_adj").read()),
    "open": sorted(int(name) for name in os.listdir("/proc/self/fd")),
    "folder": os.getcwd(),
    "umask": os.umask(0),
}))
"""
LIMITED = ("CPU", "FSIZE", "NOFILE")


def hostile() -> None:
    """Set the attributes that a process keeps over execve(2), as a student may set them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    for number in (signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 600.0)
    # SCHED_IDLE is left in the same way, but its start takes half a minute beside tests that use every CPU.
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    Path("/proc/self/oom_score_adj").write_text("900")
    os.umask(0o777)
    os.set_inheritable(os.open("/", os.O_RDONLY), True)
    # Last: a process with more open files than that opens none from here on.
    for name in LIMITED:
        _, hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (64, hard))


@pytest.fixture(scope="module")
def told() -> Any:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", CODE, *LIMITED],
        cwd=REPOSITORY,
        preexec_fn=hostile,
        close_fds=False,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return json.loads(done.stdout)


def test_signals_arrive_and_have_their_usual_effect(told: Any) -> None:
    assert told["blocked"] == []
    assert not {signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM, signal.SIGALRM} & set(told["ignored"])
    assert {signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGTSTP} <= set(told["ignored"])
    assert told["alarm"] == 0


def test_limits_are_as_high_as_they_go(told: Any) -> None:
    assert {name: soft == hard for name, (soft, hard) in told["limits"].items()} == dict.fromkeys(LIMITED, True)


def test_the_files_mode_and_folder_are_its_own(told: Any) -> None:
    assert told["umask"] == 0o022
    assert told["folder"] == "/"
    assert [number for number in told["open"] if number > 3] == []  # 3 is the listing itself


@pytest.mark.skipif(os.geteuid() != 0, reason="to raise a priority needs root")
def test_the_agent_runs_with_normal_priority_and_oom_score(told: Any) -> None:
    assert told["scheduler"] == os.SCHED_OTHER
    assert told["nice"] == 0
    assert told["oom"] == 0
