"""Test what rows of /proc/interrupts count, with rows of real machines of three processors."""

from __future__ import annotations

import pytest

from jitter_workshop.host.irq.interrupts import parse_counters
from jitter_workshop.model.irq_rows import is_device, is_timer, x86_key

X86 = """\
           CPU0       CPU1
  0:          9          0   IO-APIC   2-edge      timer
  8:          0          0   IO-APIC   8-edge      rtc0
 25:          0      40311   PCI-MSI-0000:00:03.0   1-edge      virtio0-input.0
NMI:         11         22   Non-maskable interrupts
LOC:      22010      21615   Local timer interrupts
PMI:         11         22   Performance monitoring interrupts
IWI:          1          2   IRQ work interrupts
RES:        801        733   Rescheduling interrupts
CAL:       4410       4102   Function call interrupts
TLB:        210        199   TLB shootdowns
"""
# A Renesas RZ/V2M board (Linux 5.18), an i.MX 8M that can have guests, and a ZynqMP with one counter interrupt a CPU.
ARM64 = """\
           CPU0
 11:       3394     GICv2  30 Level     arch_timer
 12:          0     GICv3  27 Level     kvm guest vtimer
 14:       4644     GICv2 283 Level     eth0:ch0:rx_be
 16:         25     GICv2 176 Level     arm-pmu
 17:         31     GICv3  79 Level     timer@306a0000
 43:        402     GICv2 272 Level     ttyS0
IPI0:        66       Rescheduling interrupts
IPI1:         7       Function call interrupts
IPI2:         0       CPU stop interrupts
IPI3:         0       CPU stop (for crash dump) interrupts
IPI4:         0       Timer broadcast interrupts
IPI5:         3       IRQ work interrupts
IPI6:         0       CPU wake-up interrupts
Err:          0
"""
# An arm of 32 bits gives the same interrupts other numbers.
ARM32 = """\
           CPU0       CPU1
 17:    1830042    1701136     GICv2  29 Level     twd
IPI0:          0          0  CPU wakeup interrupts
IPI1:          0          0  Timer broadcast interrupts
IPI2:     300122     297301  Rescheduling interrupts
IPI3:       1007       1203  Function call interrupts
"""
# Linux with two harts.
RISCV = """\
           CPU0       CPU1
 10:      53635      58007  RISC-V INTC   5 Edge      riscv-timer
 11:          8          9  RISC-V INTC  13 Edge      riscv-pmu
 12:         64          0  SiFive PLIC  10 Edge      ttyS0
IPI0:        64         67  Rescheduling interrupts
IPI1:      4620       2007  Function call interrupts
IPI2:         0          0  CPU stop interrupts
"""


@pytest.mark.parametrize(
    ("text", "timers", "calls", "devices"),
    [
        (X86, ["LOC"], {"RES": "RES", "CAL": "CAL", "IWI": "IWI"}, ["0", "8", "25"]),
        (ARM64, ["11"], {"IPI0": "RES", "IPI1": "CAL", "IPI5": "IWI", "16": "PMI"}, ["14", "17", "43"]),
        (ARM32, [], {"IPI2": "RES", "IPI3": "CAL"}, ["17"]),
        (RISCV, ["10"], {"IPI0": "RES", "IPI1": "CAL", "11": "PMI"}, ["12"]),
    ],
)
def test_a_row_counts_the_same_on_every_processor(
    text: str, timers: list[str], calls: dict[str, str], devices: list[str]
) -> None:
    rows = {key: row.name for key, row in parse_counters(text).items()}
    assert [key for key, name in rows.items() if is_timer(key, name)] == timers
    assert [key for key, name in rows.items() if is_device(key, name)] == devices
    assert {key: x86_key(key, rows[key]) for key in calls} == calls


@pytest.mark.parametrize(
    ("key", "name"),
    [("NMI", "Non-maskable interrupts"), ("IPI2", "CPU stop interrupts"), ("IPI4", "Timer broadcast interrupts")],
)
def test_a_row_that_only_one_processor_has_keeps_its_key(key: str, name: str) -> None:
    assert x86_key(key, name) == key
    assert not is_device(key, name)


def test_a_device_cannot_pass_for_a_row_with_letters() -> None:
    assert is_device("36", "Rescheduling interrupts")
    assert x86_key("36", "LOC") == "36"
