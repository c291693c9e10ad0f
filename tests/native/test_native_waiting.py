"""Test the notes of the workloads that wait."""

from __future__ import annotations

import errno

import pytest

from jitter_workshop.bench.workloads import Ack, idle_limit, slack_note
from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.host.cpu.cpuidle import ResumeLatency

pytestmark = pytest.mark.native


@pytest.mark.parametrize(
    ("slack_ns", "priority", "words"),
    [
        (1, 0, "is 1 ns (the thread asked for 1 ns; the default is 50 µs)"),
        (50_000, 0, "is 50,000 ns"),
        (-1, 0, "does not show how much slack"),
        (50_000, 10, "a real-time thread's timers have no slack"),
    ],
)
def test_the_timers_slack_is_said(slack_ns: int, priority: int, words: str) -> None:
    assert words in slack_note(slack_ns, priority)


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (ResumeLatency("n/a", 0), "pm_qos_resume_latency_us of CPU 3 is n/a: the CPU polls instead of idling"),
        (ResumeLatency("0", None), "pm_qos_resume_latency_us of CPU 3 is 0: no limit for this CPU alone"),
        (ResumeLatency("20", 20), "pm_qos_resume_latency_us of CPU 3 is 20 µs"),
        (ResumeLatency(None, None, "no such file"), ""),
    ],
)
def test_the_limit_on_idle_states_is_said(limit: ResumeLatency, said: str) -> None:
    assert idle_limit(3, limit) == said


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.ENOMEM, HostError, "not enough memory"),
        (errno.EINVAL, UsageError, "the interval of this workload must be"),
        (errno.ENETUNREACH, HostError, "loopback device (lo) is not up"),
        (errno.EMFILE, HostError, "no TCP connection over the loopback device: Too many open files"),
    ],
)
def test_why_there_is_no_receiver(number: int, kind: type[Exception], words: str) -> None:
    error = Ack.__new__(Ack)._not_made(number)
    assert isinstance(error, kind)
    assert words in error.sentence()
