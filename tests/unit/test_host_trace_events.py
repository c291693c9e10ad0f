"""Recorded pages of real kernels say to us what their kernels print of them; addresses never come through."""

from __future__ import annotations

import re
import struct
from collections import Counter
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.trace.events import Decoder, read_strings
from jitter_workshop.host.trace.format import parse_event
from jitter_workshop.host.trace.symbols import Symbols
from jitter_workshop.model.trace import IN_IRQ, IN_SOFTIRQ, KINDS, TraceEvent
from tests import tracedpages as made
from tests.kernelprints import printed, says
from tests.tracedpages import recorded


def _same_interrupt(event: TraceEvent, before: TraceEvent | None) -> bool:
    return before is not None and event.kind == "ipi_send" == before.kind and event.ts == before.ts


@pytest.mark.parametrize("name", made.NAMES)
def test_the_pages_of_a_kernel_agree_with_its_printed_text(name: str) -> None:
    record = recorded(name)
    decoder = record.decoder()
    expected = printed(record.text)
    assert sum(map(len, expected.values())) > 400
    kinds: Counter[str] = Counter()
    for cpu, pages in record.pages.items():
        events = [event for page in pages for event in decoder.events(page, cpu)]
        # One line for an interrupt sent to several CPUs.
        sent = [e for e, before in zip(events, [None, *events], strict=False) if not _same_interrupt(e, before)]
        lines = expected.get(cpu, [])
        assert len(sent) == len(lines)
        for event, line in zip(sent, lines, strict=True):
            assert says(event, line), (event, line)
            assert (event.pid, event.flags) == (line.pid, line.flags), (event, line)
            assert event.ts == line.ts or event.kind == "stack", (event, line)
        kinds.update(event.kind for event in events)
        assert kinds.keys() <= set(KINDS)
    assert {"switch", "waking", "softirq_entry", "vector_entry", "timer_entry", "stack"} <= kinds.keys(), kinds


@pytest.mark.parametrize("name", made.NAMES)
def test_no_kernel_address_comes_through(name: str) -> None:
    record = recorded(name)
    decoder = record.decoder()
    for cpu, pages in record.pages.items():
        for page in pages:
            for event in decoder.events(page, cpu):
                assert not re.search(r"ffff[0-9a-f]{8}", event.name + event.other)
                assert max(abs(event.a), abs(event.b), abs(event.c)) < 1 << 31


@pytest.mark.parametrize("name", made.NAMES)
def test_a_stack_stands_right_behind_its_event(name: str) -> None:
    record = recorded(name)
    decoder = record.decoder()
    seen = 0
    for cpu, pages in record.pages.items():
        events = [event for page in pages for event in decoder.events(page, cpu)]
        for before, event in pairwise(events):
            if event.kind == "stack" and before.kind == "switch":
                seen += 1
                assert event.ts == before.ts
                assert re.match(r"__schedule\+0x[0-9a-f]+;(preempt_)?schedule", event.name), event.name
    assert seen


@pytest.mark.parametrize("name", made.NAMES)
@given(data=st.data())
def test_damaged_pages_are_refused(name: str, data: st.DataObject) -> None:
    record, decoder = recorded(name), _decoder(name)
    pages = [page for pages in record.pages.values() for page in pages if len(page) > 100]
    page = bytearray(data.draw(st.sampled_from(pages)))
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(page) - 1))
        page[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(page)))
    for damaged in (bytes(page), bytes(page[:cut])):
        try:
            events = list(decoder.events(damaged, 0))
        except ValueError:
            continue
        assert len(events) <= len(damaged)


@cache
def _decoder(name: str) -> Decoder:
    return recorded(name).decoder()


def test_hidden_and_unknown_functions_have_no_name() -> None:
    hidden = Symbols("0000000000000000 T _text\n0000000000000000 t do_it\n")
    assert "kptr_restrict" in hidden.reason
    assert (hidden.name(0xFFFF_FFFF_8100_0000), hidden.name(0)) == ("?", "")
    assert Symbols(None, "not permitted").reason == "not permitted"
    table = "\n".join(
        (
            *("ffffffff81000300 T later", "ffffffff81000100 T first", "ffffffff81000100 T alias", "rubbish", "zz T no"),
            *("ffffffff81000200 D data", "ffffffffc0000000 t mine\t[my_mod]", "ffffffffc0001000 t end\t[my_mod]"),
        )
    )
    symbols = Symbols(table)
    assert symbols.reason == ""
    assert symbols.name(0xFFFF_FFFF_8100_0100) == "first"
    assert symbols.name_and_offset(0xFFFF_FFFF_8100_0142) == "first+0x42"
    assert symbols.name(0xFFFF_FFFF_C000_0FFF) == "mine [my_mod]"
    # In data, before the first one, and after the last one, whose length is not known.
    assert {symbols.name(at) for at in (0xFFFF_FFFF_8100_0200, 5, 0xFFFF_FFFF_C000_2000)} == {"?"}


ARM = (
    "name: {name}\nID: {number}\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
)


def test_interrupts_between_the_cpus_of_an_arm_machine() -> None:
    mask = "\tfield:__data_loc unsigned long[] target_cpus;\toffset:8;\tsize:4;\tsigned:0;\n"
    reason = "\tfield:const char * reason;\toffset:{};\tsize:8;\tsigned:0;\n"
    formats = {
        "ipi:ipi_raise": ARM.format(name="ipi_raise", number=20) + mask + reason.format(16),
        "ipi:ipi_entry": ARM.format(name="ipi_entry", number=21) + reason.format(8),
    }
    strings = read_strings('0xffff800081 : "Rescheduling interrupts"\nrubbish\nzz : "no"\n')
    assert list(strings.values()) == ["Rescheduling interrupts"]
    decoder = Decoder(made.form(), Symbols(""), {1, 3, 70}, strings)
    for title, text in formats.items():
        decoder.add(title, text)
    at = (0xFFFF_8000_81).to_bytes(8, "little")
    head = b"\0\x08" + b"\0" + (9).to_bytes(4, "little")
    raised = b"\x14" + head[:1] + head[2:3] + b"\0" + head[3:]
    raised += (24 | 16 << 16).to_bytes(4, "little") + bytes(4) + at + (1 << 3 | 1 << 5 | 1 << 70).to_bytes(16, "little")
    entry = b"\x15\0\x08\0" + (9).to_bytes(4, "little") + at
    page = made.page(5, made.small(0, raised) + made.small(2, entry))
    events = list(decoder.events(page, 0))
    assert [(e.kind, e.a, e.name, e.pid) for e in events] == [
        ("ipi_send", 3, "Rescheduling interrupts", 9),
        ("ipi_send", 70, "Rescheduling interrupts", 9),
        ("vector_entry", 0, "Rescheduling interrupts", 9),
    ]
    assert [(e.ts, e.flags) for e in events] == [(5, 0), (5, 0), (7, IN_IRQ)]


@pytest.mark.parametrize("name", made.NAMES)
@pytest.mark.parametrize(
    ("flags", "where"),
    [
        (0x00, 0),
        (0x01 | 0x02 | 0x04 | 0x20 | 0x80, 0),  # interrupts off, somebody is to run (lazily, at once), softirqs off
        (0x08 | 0x02, IN_IRQ),
        (0x10 | 0x80, IN_SOFTIRQ),
        (0x08 | 0x10, IN_IRQ | IN_SOFTIRQ),
        (0x40, IN_IRQ),  # an NMI
    ],
)
@pytest.mark.parametrize(("state", "ready"), [(0, 1), (0x100, 1), (1, 0), (2, 0), (4, 0), (0x80, 0)])
def test_where_a_thread_was_and_whether_it_could_have_gone_on(
    name: str, flags: int, where: int, state: int, ready: int
) -> None:
    """Bits that came with later kernels (lazy preemption, softirqs off) say neither; a preempted thread has a state of
    its own."""
    kernel = made.recorded(name)
    switch = parse_event(kernel.formats["sched:sched_switch"])
    record = bytearray(max(field.offset + field.size for field in switch.fields.values()))
    values = {"common_type": switch.number, "common_flags": flags, "common_pid": 7, "prev_pid": 7, "next_pid": 9}
    values |= {"prev_prio": 120, "next_prio": 49}
    for field, value in (values | {"prev_state": state}).items():
        at = switch.fields[field]
        record[at.offset : at.offset + at.size] = value.to_bytes(at.size, "little")
    (event,) = kernel.decoder().events(made.page(5, made.small(3, bytes(record))), 1)
    assert (event.ts, event.pid, event.a, event.b, event.flags) == (8, 7, 9, ready, where)
    assert (event.c >> 8, event.c & 0xFF) == (49 | 120 << 8, 0 if ready else ord(switch.symbols[state]))


def test_an_event_without_a_needed_field_is_refused() -> None:
    formats = recorded("linux-6.18").formats
    decoder = Decoder(made.form(), Symbols(""))
    for title, old, new in (
        ("sched:sched_switch", "next_pid;", "next_tid;"),
        ("sched:sched_switch", '"S"', "S"),
        ("irq:softirq_entry", "unsigned int vec;", "char vec[4];"),
        ("power:cpu_idle", "u32 state;", "__data_loc char[] state;"),
        ("made:up", "", ""),
    ):
        text = formats.get(title, formats["irq:softirq_entry"])
        for letter in "SDTtXZPI" if old == '"S"' else "":
            text = text.replace(f'"{letter}"', letter)
        with pytest.raises(ValueError, match=r"no field|does not say|is no number|not a known event"):
            decoder.add(title, text.replace(old, new))
    assert list(decoder.events(recorded("linux-6.18").pages[0][0], 0)) == []


CHILD = (
    "\tfield:pid_t child_pid;\toffset:8;\tsize:4;\tsigned:1;\n"
    "\tfield:char child_comm[16];\toffset:12;\tsize:16;\tsigned:0;\n"
)
ENDED = "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n"


def test_calls_and_the_beginning_and_end_of_threads_are_told() -> None:
    decoder = Decoder(made.form(), Symbols(""))
    for number, (title, fields) in enumerate(
        {
            "syscalls:sys_enter_futex": "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n",
            "syscalls:sys_exit_futex": "\tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;\n",
            "sched:sched_process_fork": CHILD,
            "sched:sched_process_exit": ENDED,
        }.items(),
        30,
    ):
        decoder.add(title, ARM.format(name=title.partition(":")[2], number=number) + fields)
    head = [struct.pack("<HBBi", number, 0, 0, 7) for number in range(30, 34)]
    records = [
        *(head[0] + bytes(8), head[1] + bytes(16)),
        *(head[2] + struct.pack("<i16s", 8, b"child"), head[3] + struct.pack("<16si", b"parent", 7)),
    ]
    page = made.page(5, b"".join(made.small(1, record) for record in records))
    found = [(event.kind, event.pid, event.a, event.name) for event in decoder.events(page, 1)]
    assert found == [
        ("call", 7, 0, "futex"),
        ("call_end", 7, 0, "futex"),
        ("fork", 7, 8, "child"),
        ("exit", 7, 7, "parent"),
    ]
