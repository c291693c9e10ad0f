"""Record a few binary pages of a kernel's trace with the kernel's own printing of the same events, for tests:
``python -m tests.lab.record_pages FILE [stock|rt]``, of this machine (as root) or the lab machine. One JSON object,
packed with xz; ``tests/tracedpages.py`` reads it.

``record`` is self-contained: the lab machine runs its source. It works in an instance of its own and removes it.
"""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path
from typing import Any

WANTED = {
    "sched": ["sched_switch", "sched_migrate_task", "sched_waking"],
    "ipi": ["ipi_send_cpu", "ipi_send_cpumask"],
    "irq": ["irq_handler_entry", "irq_handler_exit", "softirq_entry", "softirq_exit"],
    "nmi": ["nmi_handler"],
    "workqueue": ["workqueue_execute_start", "workqueue_execute_end"],
    "timer": ["tick_stop", "hrtimer_expire_entry", "hrtimer_expire_exit"],
    "csd": ["csd_function_entry", "csd_function_exit"],
    "power": ["cpu_frequency", "cpu_idle"],
    "exceptions": ["page_fault_user", "page_fault_kernel"],
}


def record(wanted: dict[str, list[str]], kilobytes: int) -> dict[str, Any]:
    """The last ``kilobytes`` for each CPU of a busy half second."""
    import base64
    import ctypes
    import os
    import re
    import socket
    import time

    top = "/sys/kernel/tracing"
    folder = f"{top}/instances/jitter-workshop-{os.getpid()}-record"

    def read(path: str) -> str:
        with open(path) as file:
            return file.read()

    def write(path: str, text: str) -> None:
        file = os.open(f"{folder}/{path}", os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(file, text.encode())
        finally:
            os.close(file)

    def pages(cpu: int) -> list[str]:
        found = []
        file = os.open(f"{folder}/per_cpu/cpu{cpu}/trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK)
        try:
            while page := os.read(file, 1 << 16):
                found.append(base64.b64encode(page.rstrip(b"\0") or b"\0").decode())
        except BlockingIOError:
            pass
        finally:
            os.close(file)
        return found

    def busy() -> None:
        """Switches between two processes on each CPU, their wakeups, loopback traffic, page faults, TLB shootdowns."""
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
        libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        child = os.fork()
        if child == 0:
            libc.prctl(15, b"[000] d..1. 7:\n", 0, 0, 0)  # PR_SET_NAME: a task's name may hold anything
            while there.recv(10) != b"end":
                there.send(b"back")
            os._exit(0)
        out, back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        back.bind(("127.0.0.1", 0))
        cpus = sorted(os.sched_getaffinity(0))
        ends = time.monotonic() + 0.5
        turn = 0
        while time.monotonic() < ends:
            turn += 1
            os.sched_setaffinity(child, {cpus[turn % len(cpus)]})
            here.send(b"go")
            here.recv(10)
            out.sendto(b"x", back.getsockname())
            back.recv(10)
            place = libc.mmap(None, 1 << 16, 3, 0x22, -1, 0)
            ctypes.memset(place, 1, 1 << 16)
            libc.munmap(place, 1 << 16)
            if turn % 8 == 0:
                os.sched_setaffinity(0, {cpus[turn // 8 % len(cpus)]})
                time.sleep(0.001)
        here.send(b"end")
        os.waitpid(child, 0)

    os.mkdir(folder)
    try:
        write("tracing_on", "0")
        write("trace_clock", "x86-tsc")
        write("buffer_size_kb", str(kilobytes))
        formats = {}
        for system, names in wanted.items():
            for name in names:
                if os.path.exists(f"{folder}/events/{system}/{name}/enable"):
                    write(f"events/{system}/{name}/enable", "1")
                    formats[f"{system}:{name}"] = read(f"{top}/events/{system}/{name}/format")
        vectors = f"{folder}/events/irq_vectors"
        for name in sorted(os.listdir(vectors)) if os.path.isdir(vectors) else []:
            if name.endswith(("_entry", "_exit")):
                write(f"events/irq_vectors/{name}/enable", "1")
                formats[f"irq_vectors:{name}"] = read(f"{top}/events/irq_vectors/{name}/format")
        formats["ftrace:kernel_stack"] = read(f"{top}/events/ftrace/kernel_stack/format")
        write("events/sched/sched_switch/trigger", f"stacktrace if prev_pid == {os.getpid()}")
        write("tracing_on", "1")
        busy()
        write("tracing_on", "0")
        write("events/sched/sched_switch/trigger", "!stacktrace")
        text = read(f"{folder}/trace")
        cpus = [int(name[3:]) for name in sorted(os.listdir(f"{folder}/per_cpu")) if name[3:].isdigit()]
        raw = {str(cpu): pages(cpu) for cpu in cpus}
        header_page, header_event = read(f"{top}/events/header_page"), read(f"{top}/events/header_event")
    finally:
        os.rmdir(folder)
    named = set(re.findall(r"[A-Za-z_][\w.]*", text))
    kept, last = [], False
    for line in read("/proc/kallsyms").splitlines():
        keep = line.split()[2] in named and line.split()[1] in "tTwW"
        if keep or last:
            kept.append(line)
        last = keep
    with open("/proc/sys/kernel/osrelease") as file:
        release = file.read().strip()
    return {
        "release": release,
        "header_page": header_page,
        "header_event": header_event,
        "formats": formats,
        "symbols": "\n".join(kept),
        "pages": raw,
        "text": text,
    }


def main(target: str, lab: str = "") -> None:
    if lab:
        from jitter_workshop.practice.qemu import MachineOptions
        from tests.lab import machine
        from tests.lab.conftest import CACHE

        booted = machine.boot(MachineOptions(kernel=lab), CACHE)
        try:
            made = booted.call_source(Path(__file__).read_text(), "record", WANTED, 12)
        finally:
            booted.close()
    else:
        made = record(WANTED, 12)
    Path(target).write_bytes(lzma.compress(json.dumps(made).encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{target}: {made['release']}, {Path(target).stat().st_size} bytes, {made['text'].count(chr(10))} lines")


if __name__ == "__main__":
    main(*sys.argv[1:])
