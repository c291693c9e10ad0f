"""Test the places for connections: each lasts as long as its process, a user has few, and the file is root's own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from jitter_workshop.agent.service import listener
from jitter_workshop.errors import HostError


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    opened = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield opened
    os.close(opened)


class Holder:
    """A process that takes a place and keeps it; ``told``: b"" or why it has none."""

    def __init__(self, folder: int, uid: int) -> None:
        source, sink = os.pipe()
        stay, self._end = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                os.close(source)
                os.close(self._end)
                try:
                    listener.take_place(os.dup(folder), uid, 2)
                    os.write(sink, b"+")
                except HostError as error:
                    os.write(sink, b"-" + error.sentence().encode())
                os.close(sink)
                os.read(stay, 1)
            finally:
                os._exit(0)
        os.close(sink)
        os.close(stay)
        with os.fdopen(source, "rb") as said:
            self.told = said.read()

    def end(self) -> None:
        os.write(self._end, b".")
        os.close(self._end)
        os.waitpid(self._pid, 0)


def test_each_user_has_so_many_and_gets_them_back(folder: int) -> None:
    first, second, third = (Holder(folder, 1000) for _ in range(3))
    other = Holder(folder, 1001)
    assert [one.told for one in (first, second, other)] == [b"+"] * 3
    assert third.told == b"-you already have 2 connections, which is the limit; close one, or try again later"
    first.end()
    again = Holder(folder, 1000)
    assert again.told == b"+"
    for one in (second, third, other, again):
        one.end()


def test_no_other_user_can_open_the_file(folder: int, tmp_path: Path) -> None:
    Holder(folder, 4_294_967_294).end()
    status = (tmp_path / listener.PLACES).stat()
    assert (status.st_mode & 0o777, status.st_size) == (0o600, 0)


def test_a_link_in_its_place_is_not_followed(folder: int, tmp_path: Path) -> None:
    (tmp_path / listener.PLACES).symlink_to(tmp_path / "elsewhere")
    holder = Holder(folder, 1000)
    holder.end()
    assert holder.told.startswith(b"-your connections cannot be counted")
    assert not (tmp_path / "elsewhere").exists()
