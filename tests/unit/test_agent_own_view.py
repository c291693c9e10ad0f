"""The agent's own view of a trace that the host has not mounted: what is asked of the kernel, and when."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jitter_workshop.agent.tracing import own_view
from jitter_workshop.agent.tracing.own_view import OwnView, can_be_had
from jitter_workshop.host.root import HostRoot
from jitter_workshop.tuning.writer import HostWriter
from tests import hosttrees

UNMOUNTED = "mount -t tracefs nodev /sys/kernel/tracing"


class Kernel:
    """Takes the calls; ``refuses``: the number of the call that fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, refuses: int = -1, command: str = UNMOUNTED) -> None:
        self.calls: list[tuple[object, ...]] = []
        self._refuses = refuses
        monkeypatch.setattr(own_view, "_call", self._call)
        monkeypatch.setattr(own_view, "mount_command", lambda _: command)

    def _call(self, *words: object) -> None:
        self.calls.append(words)
        if len(self.calls) == self._refuses:
            raise PermissionError(1, os.strerror(1))


def test_the_trace_is_mounted_where_nothing_goes_out_to_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(monkeypatch)
    view = OwnView(HostRoot(), HostWriter())
    assert view.mounted
    view.close()
    view.close()
    assert kernel.calls == [
        ("unshare", 0x20000),
        ("mount", b"none", b"/", None, 0x84000, None),
        ("mount", b"nodev", b"/sys/kernel/tracing", b"tracefs", 0xE, None),
        ("umount2", b"/sys/kernel/tracing", 2),
    ]


@pytest.mark.parametrize("refuses", [1, 2, 3])
def test_after_a_refusal_nothing_more_is_tried(monkeypatch: pytest.MonkeyPatch, refuses: int) -> None:
    kernel = Kernel(monkeypatch, refuses)
    view = OwnView(HostRoot(), HostWriter())
    view.close()
    assert (len(kernel.calls), view.mounted, bool(view.why_not)) == (refuses, False, True)


def test_nothing_is_done_where_it_is_mounted_or_on_a_made_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernel = Kernel(monkeypatch, command="")
    OwnView(HostRoot(), HostWriter()).close()
    monkeypatch.setattr(own_view, "mount_command", lambda _: UNMOUNTED)
    OwnView(HostRoot(tmp_path), HostWriter(tmp_path)).close()
    assert kernel.calls == []


@pytest.mark.parametrize(
    ("bounding", "kinds", "first", "can"),
    [
        ("000001ffffffffff", "nodev\ttracefs\n", True, True),
        ("00000000a80425fb", "nodev\ttracefs\n", True, False),  # a container's usual set
        ("000001ffffffffff", "nodev\tdebugfs\n", True, False),
        ("000001ffffffffff", "nodev\ttracefs\n", False, False),
        ("what", "nodev\ttracefs\n", True, False),
    ],
)
def test_an_own_view_of_the_trace_needs_the_right_to_mount(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bounding: str, kinds: str, first: bool, can: bool
) -> None:
    monkeypatch.setattr(own_view, "namespace_differs", lambda *_: not first)
    hosttrees.write(tmp_path, {"proc/self/status": f"CapBnd:\t{bounding}\n", "proc/filesystems": kinds})
    assert can_be_had(HostRoot(tmp_path)) is can
