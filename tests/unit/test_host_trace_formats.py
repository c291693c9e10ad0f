"""The kernel's descriptions of its events are understood or refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.trace.format import Layout, event_field, located, parse_event, parse_page
from tests import tracedpages as made

COMMON = """\
name: made_up
ID: 77
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

"""
EVENT = (
    COMMON
    + """\
\tfield:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:0;
\tfield:__rel_loc char[] other;\toffset:12;\tsize:4;\tsigned:0;
\tfield:s64 delta;\toffset:16;\tsize:8;\tsigned:1;
\tfield:char comm[16];\toffset:24;\tsize:16;\tsigned:0;
\tfield:void * function;\toffset:40;\tsize:8;\tsigned:0;

print fmt: "%s", __print_symbolic(REC->vec, { 0, "HI" }, { 0x10, "A" }, { (1 << 3), "B" }, { NR_OF_IT, "C" }), "{ 9"
"""
)


def test_a_format_says_where_everything_is() -> None:
    event = parse_event(EVENT)
    assert (event.name, event.number) == ("made_up", 77)
    assert event.symbols == {0: "HI", 0x10: "A", 8: "B"}
    assert event.fields["delta"].code == "q"
    assert event.fields["comm"].code == "16s"
    assert [event.fields[name].located for name in ("name", "other", "comm")] == ["__data_loc", "__rel_loc", ""]
    layout = Layout(event, ("function", "delta", "common_pid"), ("comm", "name", "other"))
    record = (
        (77).to_bytes(2, "little")
        + b"\0\0"
        + (-5).to_bytes(4, "little", signed=True)
        + (48 | 4 << 16).to_bytes(4, "little")
        + (36 | 3 << 16).to_bytes(4, "little")
        + (-6).to_bytes(8, "little", signed=True)
        + b"a task".ljust(16, b"\0")
        + (1 << 63).to_bytes(8, "little")
        + b"one\0two\0"
    )
    page = b"...." + record
    function, delta, pid, comm, name, other = layout.values(page, 4)
    assert (function, delta, pid, comm.rstrip(b"\0")) == (1 << 63, -6, -5, b"a task")
    assert located(page, 4, len(page), event_field(event, "name"), name) == b"one\0"
    assert located(page, 4, len(page), event_field(event, "other"), other) == b"two"
    with pytest.raises(ValueError, match="outside its record"):
        located(page, 4, len(page) - 6, event_field(event, "name"), name)


def test_a_missing_field_or_another_form_is_refused() -> None:
    event = parse_event(EVENT)
    with pytest.raises(ValueError, match="no field 'vector'"):
        Layout(event, ("vector",))
    for text in ("comm", "name"):
        with pytest.raises(ValueError, match="is no number"):
            Layout(event, (text,))
    odd = parse_event(EVENT.replace("size:8;\tsigned:1", "size:3;\tsigned:1"))
    with pytest.raises(ValueError, match="no number of a known size"):
        Layout(odd, ("delta",))
    overlapping = parse_event(EVENT.replace("offset:24", "offset:20"))
    with pytest.raises(ValueError, match="overlap"):
        Layout(overlapping, ("delta",), ("comm",))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "name: x\nID: 1\n",
        EVENT.replace("ID: 77", "ID: 65536"),
        EVENT.replace("ID: 77", "ID: -1"),
        EVENT.replace("offset:8;", ""),
        EVENT.replace("offset:8;", "offset:9999999;"),
        "".join([COMMON, *(f"\tfield:int a{n};\toffset:{n};\tsize:4;\tsigned:1;\n" for n in range(1100))]),
    ],
)
def test_no_event_is_made_of_half_a_format(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_event(text)


def test_pages_of_any_size_and_of_32_bits() -> None:
    assert made.form().size == 4096
    assert made.form(65_520).size == 65_536
    narrow = made.HEADER_PAGE.replace("offset:8;\tsize:8", "offset:8;\tsize:4").replace("offset:16", "offset:12")
    form = parse_page(narrow.format(size=4084), made.HEADER_EVENT)
    assert (form.commit.size, form.data_offset, form.size) == (4, 12, 4096)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("local_t commit", "local_t committed"),
        ("size:{size}", "size:0"),
        ("offset:16;\tsize:{size}", "offset:8;\tsize:{size}"),
        ("field: u64 timestamp;\toffset:0;\tsize:8", "field: u64 timestamp;\toffset:0;\tsize:4"),
        ("    5 bits", "    6 bits"),
        ("padding     : type == 29", "padding     : type == 40"),
        ("padding     : type == 29", ""),
    ],
)
def test_pages_of_an_unknown_form_are_refused(old: str, new: str) -> None:
    header_page = made.HEADER_PAGE.replace(old, new).format(size=4080)
    with pytest.raises(ValueError, match="trace"):
        parse_page(header_page, made.HEADER_EVENT.replace(old, new))


@given(st.lists(st.sampled_from([*EVENT.splitlines(), "field:", "field:;;;;", "ID:", "name:", "print fmt: { , "])))
def test_any_lines_are_a_format_or_refused(lines: list[str]) -> None:
    try:
        event = parse_event("\n".join(lines))
        Layout(event, [name for name in event.fields if name.startswith("common")])
    except ValueError:
        pass


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_is_a_description_or_refused(first: str, second: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_page(first, second)
    with pytest.raises(ValueError, match=r"."):
        parse_event(first)
