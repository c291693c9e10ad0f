"""The kinds of settings of CPUs that are no plain file."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.root import HostRoot, TextReading
from jitter_workshop.tuning.setting_types.cpu import CYCLED, NOT_HELD
from jitter_workshop.tuning.setting_types.kinds import kind_of
from jitter_workshop.tuning.writer import HostWriter
from tests.hosttrees import CPU, write

ONLINE = f"/{CPU}/cpu3/online"
DISABLE = f"/{CPU}/cpu3/cpuidle/state2/disable"


class Remembering(HostWriter):
    """A made host that remembers what was written, and fails once where it is told to."""

    def __init__(self, root: Path, fail_at: int = -1) -> None:
        super().__init__(root)
        self.told: list[str] = []
        self.fail_at = fail_at

    def write(self, path: str, text: str) -> None:
        if len(self.told) == self.fail_at:
            self.fail_at = -1
            raise OSError(errno.EBUSY, "busy")
        self.told.append(text)
        super().write(path, text)


def test_a_cycle_goes_offline_and_comes_back(tmp_path: Path) -> None:
    root, kind = HostRoot(write(tmp_path, {ONLINE[1:]: "1\n"})), kind_of("cpu-cycle")
    writer = Remembering(tmp_path)
    assert kind.read(root, ONLINE).text == "1"
    assert not kind.same("1", CYCLED)
    kind.write(writer, ONLINE, CYCLED)
    assert writer.told == ["0", "1"]
    assert kind.read(root, ONLINE).text == CYCLED
    kind.write(writer, ONLINE, "1")
    assert writer.told == ["0", "1", "1"]
    assert kind.read(root, ONLINE).text == "1"


def test_a_cycle_that_was_cut_short_is_known_for_ours(tmp_path: Path) -> None:
    root, kind = HostRoot(write(tmp_path, {ONLINE[1:]: "1\n"})), kind_of("cpu-cycle")
    writer = Remembering(tmp_path, fail_at=1)
    with pytest.raises(OSError, match="busy"):
        kind.write(writer, ONLINE, CYCLED)
    found = kind.read(root, ONLINE).text
    assert found == "0"
    assert kind.halfway(found, CYCLED)
    assert not kind.halfway("1", CYCLED)
    kind.write(writer, ONLINE, "1")
    assert kind.read(root, ONLINE).text == "1"


def test_a_cpu_that_went_after_its_cycle_is_offline(tmp_path: Path) -> None:
    root, kind = HostRoot(write(tmp_path, {ONLINE[1:]: "1\n"})), kind_of("cpu-cycle")
    kind.write(HostWriter(tmp_path), ONLINE, CYCLED)
    write(tmp_path, {ONLINE[1:]: "0\n"})
    assert kind.read(root, ONLINE).text == "0"
    kind.write(HostWriter(tmp_path), ONLINE, "1")


@given(st.integers(0, 1 << 64))
def test_only_the_users_bit_of_a_state_counts(value: int) -> None:
    kind = kind_of("idle-disable")

    class Says(HostRoot):
        def reading(self, path: str, limit: int = 0) -> TextReading:
            return TextReading(str(value))

    found = kind.read(Says(Path("/nowhere")), DISABLE).text
    assert found == str(value % 2)


@given(st.sampled_from("01"), st.sampled_from(["0\n", "1\n", "2\n", "3\n"]))
def test_a_state_reads_back_as_it_was_written(value: str, before: str) -> None:
    import tempfile

    kind = kind_of("idle-disable")
    with tempfile.TemporaryDirectory() as folder:
        root = write(Path(folder), {DISABLE[1:]: before})
        kind.write(HostWriter(root), DISABLE, value)
        read = kind.read(HostRoot(root), DISABLE).text
        assert read is not None
        assert kind.same(read, value)


def test_a_state_that_says_no_number_has_a_reason(tmp_path: Path) -> None:
    root, kind = HostRoot(write(tmp_path, {DISABLE[1:]: "maybe\n"})), kind_of("idle-disable")
    assert kind.read(root, DISABLE).reason == "the file does not hold a number"
    assert kind.read(root, DISABLE + "d").reason == "no such file"


def test_nothing_is_held_on_a_made_host(tmp_path: Path) -> None:
    path, kind = "/dev/cpu_dma_latency", kind_of("held")
    root = HostRoot(write(tmp_path, {path[1:]: ""}))
    with pytest.raises(OSError, match="recorded host"):
        kind.write(HostWriter(tmp_path), path, "10")
    with pytest.raises(OSError, match="must be a latency"):
        kind.write(HostWriter(tmp_path), path, "ten")
    assert kind.read(root, path).text == NOT_HELD
    assert not kind.exists(root, path)
    kind.write(HostWriter(tmp_path), path, NOT_HELD)
    assert (tmp_path / path[1:]).read_text() == ""


def test_a_setting_that_a_process_holds_can_be_changed_and_let_go(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The device's part is played by a file, the host's by a writer that says that it is real."""
    device = tmp_path / "device"
    device.write_bytes(b"")

    class Real(HostWriter):
        @property
        def real(self) -> bool:
            return True

    kind, writer, root = kind_of("held"), Real(tmp_path), HostRoot(tmp_path)
    kind.write(writer, str(device), "10")
    assert kind.read(root, str(device)).text == "10"
    assert kind.same("10", "010")
    assert not kind.same("10", NOT_HELD)
    assert kind.exists(root, str(device))
    kind.write(writer, str(device), "0")
    kind.write(writer, str(device), NOT_HELD)
    assert kind.read(root, str(device)).text == NOT_HELD
    assert not kind.exists(root, str(device))
    import sys

    assert [int.from_bytes(device.read_bytes()[n : n + 4], sys.byteorder) for n in (0, 4)] == [10, 0]
