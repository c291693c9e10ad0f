"""Test that a trace that is not mounted is noticed before a run is spent on it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from jitter_workshop.agent.tracing import own_view
from jitter_workshop.agent.tracing.instances import mount_command
from jitter_workshop.flow.chapters.diagnosis import ChapterDiagnosis
from jitter_workshop.flow.chapters.session_context import SessionContext
from jitter_workshop.host.root import HostRoot
from tests.fakes import open_workshop


def test_the_command_is_named_only_where_the_trace_can_be_mounted(tmp_path: Path) -> None:
    root = HostRoot(tmp_path)
    assert mount_command(root) == ""
    there = tmp_path / "sys/kernel/tracing"
    there.mkdir(parents=True)
    assert mount_command(root) == "mount -t tracefs nodev /sys/kernel/tracing"
    (there / "trace_clock").write_text("[local] global\n")
    assert mount_command(root) == ""


def test_a_run_that_would_be_traced_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    workshop = open_workshop()
    workshop.context.mount_command = "mount -t tracefs nodev /sys/kernel/tracing"
    walk = workshop.walk("baseline")
    assert "not mounted" not in walk.measuring.warning("measure")
    monkeypatch.setattr(ChapterDiagnosis, "traces", lambda *_: True)
    assert "As root, 'mount -t tracefs nodev /sys/kernel/tracing' mounts it." in walk.measuring.warning("measure")
    assert "not mounted" not in walk.measuring.warning("look")
    workshop.context.mount_command = ""
    assert "not mounted" not in walk.measuring.warning("measure")


def test_without_rights_the_command_is_offered_because_no_agent_can_mount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sys/kernel/tracing").mkdir(parents=True)
    monkeypatch.setattr(own_view, "can_be_had", lambda _: True)
    offered = SessionContext.mount_command.fget
    assert offered is not None
    for rights, expected in (("none", "mount -t tracefs"), ("root", ""), ("sudo", "")):
        session = SimpleNamespace(rights=rights)
        here = SimpleNamespace(class_view=None, agent_connection=session, root=HostRoot(tmp_path), recorded=False)
        assert offered(here).startswith(expected)
        assert bool(offered(here)) is bool(expected)
