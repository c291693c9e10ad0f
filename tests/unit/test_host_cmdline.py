"""Boot parameters, read as the kernel reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.boot.cmdline import (
    CommandLine,
    parse_command_line,
    parse_isolcpus,
    read_command_line,
    split_words,
)
from jitter_workshop.host.cpu.topology import last_cpu
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from tests.hosttrees import CPU, write


def line(text: str) -> CommandLine:
    return CommandLine(parse_command_line(text), text)


def test_words_quotes_and_the_end_of_the_kernels_part() -> None:
    assert parse_command_line(
        'quiet  root=/dev/sda1 dyndbg="file a.c +p; file b.c" "odd=one two" x= -- isolcpus=3'
    ) == (
        ("quiet", None),
        ("root", "/dev/sda1"),
        ("dyndbg", "file a.c +p; file b.c"),
        ("odd", "one two"),
        ("x", ""),
    )


def test_the_last_of_repeated_parameters_counts_and_hyphens_are_underscores() -> None:
    told = line("skew_tick=0 skew-tick=1 nohz_full=1-3 nohz_full=2")
    assert told.value("skew_tick") == "1"
    assert told.values("skew-tick") == ("0", "1")
    assert told.cpus("nohz_full") == CpuSet((2,))
    assert told.has("nohz_full")
    assert not told.has("nohz")
    assert told.value("missing") is None
    assert told.cpus("missing") is None


@pytest.mark.parametrize(
    ("value", "flags", "cpus"),
    [
        ("1-3", ("domain",), CpuSet((1, 2, 3))),
        ("managed_irq,domain,1-2,5", ("managed_irq", "domain"), CpuSet((1, 2, 5))),
        ("nohz,2-N", ("nohz",), CpuSet((2, 3, 4, 5, 6, 7))),
        ("later,domain,1", ("domain",), CpuSet((1,))),
        # "all" is taken for a flag, so that nothing is isolated.
        ("all", ("domain",), CpuSet()),
        ("dom4in,1", (), None),
        ("domain,9-1", ("domain",), None),
        ("", ("domain",), CpuSet()),
    ],
)
def test_isolcpus(value: str, flags: tuple[str, ...], cpus: CpuSet | None) -> None:
    found = parse_isolcpus(value, last=7)
    assert (found.flags, found.cpus) == (flags, cpus)


def test_a_hidden_command_line_has_a_reason(tmp_path: Path) -> None:
    told = read_command_line(HostRoot(tmp_path))
    assert (told.parameters, told.text, told.reason) == ((), None, "/proc/cmdline: no such file")
    assert last_cpu(HostRoot(tmp_path)) is None
    write(tmp_path, {f"{CPU}/possible": "\n"})
    assert last_cpu(HostRoot(tmp_path)) is None


BLANKS = str.maketrans("", "", " \t\n\r\v\f")
values = st.text(
    st.characters(codec="ascii", exclude_characters='"', categories=("L", "N", "P", "S", "Zs")), max_size=20
)
names = st.from_regex(r"[a-z][a-z0-9_.]{0,15}", fullmatch=True)


@given(st.lists(st.tuples(names, st.one_of(st.none(), values)), max_size=12))
def test_parameters_written_with_quotes_are_read_back(parameters: list[tuple[str, str | None]]) -> None:
    text = " ".join(name if value is None else f'{name}="{value}"' for name, value in parameters)
    assert parse_command_line(text) == tuple(parameters)


@given(st.text(max_size=200))
def test_any_line_is_read(text: str) -> None:
    for name, value in parse_command_line(text):
        assert name
        assert value is None or isinstance(value, str)
    assert "".join(split_words(text)).translate(BLANKS) == text.translate(BLANKS)
    parse_isolcpus(text, 3)
