"""Measure whether KVM is faster than emulation. On some hosts /dev/kvm exists, but a loop in a guest of KVM takes a
thousand times as long as outside the guest.

A tiny guest counts down and then touches a port. ``probe_kvm`` runs this guest in a process of its own, and ends the
process if it hangs. Interface: Documentation/virt/kvm/api.rst.
"""

from __future__ import annotations

import ctypes
import fcntl
import functools
import json
import mmap
import os
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

DEVICE = "/dev/kvm"
MOST_TURN_NS = 5.0
"""The longest time in ns of one pass of the guest's loop at which KVM counts as usable. A pass takes 0.3 to 1 ns on a
processor, and 2 to 4 ns in QEMU's emulation."""
MOST_EXIT_US = 200.0
"""The longest time in µs of an exit at a port at which KVM counts as usable. An exit takes 1 to 5 µs, and up to 50 µs
in a guest of a guest."""
_TURNS = 20_000
_EXITS = 20
_BUDGET_S = 0.05
_PATIENCE_S = 3.0

_CREATE_VM, _VCPU_MMAP_SIZE, _CREATE_VCPU, _RUN = 0xAE01, 0xAE04, 0xAE41, 0xAE80
_SET_MEMORY, _SET_REGS, _GET_SREGS, _SET_SREGS = 0x4020AE46, 0x4090AE82, 0x8138AE83, 0x4138AE84
_EXIT_IO = 2
_PAGE = 4096
_MOST_TOLD = 200
"""The largest length of an error of the test guest. This module also runs alone, without ``model.text``."""


@dataclass(frozen=True)
class KvmProbe:
    """Hold the result of a probe of KVM. ``usable``: True if KVM is faster than emulation. ``why``: the reason for this
    result, a part of a sentence. ``turn_ns``: the time of one pass of the test loop. ``exit_us``: the time of one exit
    from the guest to the host. Each time is None if it was not measured."""

    usable: bool
    why: str
    turn_ns: float | None = None
    exit_us: float | None = None


@functools.cache
def probe_kvm() -> KvmProbe:
    """Measure for 0.05 s whether KVM is faster than emulation on this host, and return the finding."""
    if not Path(DEVICE).exists():
        return KvmProbe(False, f"there is no {DEVICE} here")
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return KvmProbe(False, f"this user may not open {DEVICE}")
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", __file__], capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return KvmProbe(False, f"a test guest in KVM did not end within {_PATIENCE_S:.0f} s")
    except OSError as error:
        return KvmProbe(False, f"KVM could not be measured: {error.strerror}")
    return parse_probe(done.stdout)


def parse_probe(said: str) -> KvmProbe:
    """Parse the output of the process that measures KVM, and return the result."""
    try:
        told = json.loads(said)
        if "error" in told:
            return KvmProbe(False, f"KVM refuses a guest: {str(told['error'])[:_MOST_TOLD]}")
        turn, exit_us = float(told["turn_ns"]), float(told["exit_us"])
    except (ValueError, KeyError, TypeError):
        return KvmProbe(False, "the process that measures KVM ended without a result")
    measured = f"in KVM a pass of a loop takes {turn:.3g} ns, and an exit takes {exit_us:.3g} µs"
    usable = turn <= MOST_TURN_NS and exit_us <= MOST_EXIT_US
    return KvmProbe(usable, measured if usable else f"{measured}, which is slower than an emulator", turn, exit_us)


def guest_code(turns: int) -> bytes:
    """Return the guest's program in real mode: count down from ``turns``, touch port 0x10, and begin again."""
    return b"\x66\xb9" + struct.pack("<I", turns) + b"\x66\x49\x75\xfc\xe6\x10\xeb\xf2"


def time_guest() -> dict[str, float]:
    """Run the guest for a short while and return the times. Raise OSError if KVM refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    kvm = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
    machine = fcntl.ioctl(kvm, _CREATE_VM, 0)
    memory = mmap.mmap(-1, _PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    fcntl.ioctl(machine, _SET_MEMORY, struct.pack("IIQQQ", 0, 0, _PAGE, _PAGE, address))
    processor = fcntl.ioctl(machine, _CREATE_VCPU, 0)
    shared = mmap.mmap(processor, fcntl.ioctl(kvm, _VCPU_MMAP_SIZE, 0))
    segments = bytearray(fcntl.ioctl(processor, _GET_SREGS, bytes(312)))
    segments[0:8] = bytes(8)  # cs: base
    segments[12:14] = bytes(2)  # cs: selector
    fcntl.ioctl(processor, _SET_SREGS, bytes(segments))

    def timed(turns: int, times: int) -> float:
        """Return the median time in ns from one touch of the port to the next."""
        memory[: len(guest_code(turns))] = guest_code(turns)
        # The instruction pointer and the flags are the last two of 18 registers.
        fcntl.ioctl(processor, _SET_REGS, struct.pack("18Q", *[0] * 16, _PAGE, 2))
        taken: list[int] = []
        ends = time.monotonic() + _BUDGET_S / 2
        while len(taken) < 1 + times and (len(taken) < 2 or time.monotonic() < ends):
            began = time.perf_counter_ns()
            # Not fcntl.ioctl, which would copy its argument.
            if libc.ioctl(processor, ctypes.c_ulong(_RUN), ctypes.c_ulong(0)):
                raise OSError(ctypes.get_errno(), "KVM_RUN")
            taken.append(time.perf_counter_ns() - began)
            (reason,) = struct.unpack_from("I", shared, 8)
            if reason != _EXIT_IO:
                raise OSError(0, f"exit reason {reason}")
        rounds = sorted(taken[1:])
        return float(rounds[len(rounds) // 2])

    an_exit = timed(1, _EXITS)
    return {"exit_us": an_exit / 1000, "turn_ns": max(0.0, timed(_TURNS, _EXITS) - an_exit) / _TURNS}


if __name__ == "__main__":
    try:
        found: dict[str, object] = dict(time_guest())
    except OSError as problem:
        found = {"error": problem.strerror or str(problem)}
    print(json.dumps(found))
