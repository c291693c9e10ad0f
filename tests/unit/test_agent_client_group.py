"""Test that a user outside the class is told so before sudo is asked."""

from __future__ import annotations

import grp
import os
from types import SimpleNamespace

import pytest

from jitter_workshop.agent import client, transport
from jitter_workshop.errors import HostError


@pytest.fixture
def student(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        pytest.fail("sudo was asked")

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "getegid", lambda: 1000)
    monkeypatch.setattr(os, "getgroups", lambda: [1000, 27])
    monkeypatch.setattr(client, "class_socket", lambda: None)
    monkeypatch.setattr(client, "connect_to_agent", never)


@pytest.mark.parametrize("number", [None, 4000])
def test_a_user_outside_the_group_is_told_and_sudo_is_not_asked(
    number: int | None, student: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def group(_: str) -> SimpleNamespace:
        if number is None:
            raise KeyError
        return SimpleNamespace(gr_gid=number)

    monkeypatch.setattr(grp, "getgrnam", group)
    with pytest.raises(HostError) as refused:
        client.connect_class()
    assert refused.value.message == "you are not in the group jitterlab"
    assert "ask the instructor" in refused.value.advice


def test_members_and_root_are_let_on(student: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grp, "getgrnam", lambda _: SimpleNamespace(gr_gid=27))
    transport.need_group()
    monkeypatch.setattr(grp, "getgrnam", lambda _: SimpleNamespace(gr_gid=4000))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    transport.need_group()
