"""A made host with a kernel's trace: what an instance holds is put there when its folder is made, as the kernel does.

The pages are recorded ones (``tests.tracedpages``), for those CPUs that the recording has.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests import hosttrees, tracedpages

TRACEFS = "sys/kernel/tracing"
INSTANCES = f"{TRACEFS}/instances"
TEMPLATE = "made-instance"
CPUS = range(4)
HOT = "0-1"
STATS = "entries: 100\noverrun: {}\ncommit overrun: {}\nbytes: 4096\ndropped events: {}\nread events: 3\n"


def make(root: Path, pid: int, name: str = "linux-6.18", uids: str = "1000\t1000\t1000\t1000") -> Path:
    """The tree, with a process ``pid`` that has one thread."""
    recorded = tracedpages.recorded(name)
    hosttrees.small(root, len(CPUS))
    files = {
        f"{TRACEFS}/trace_clock": "[local] global counter uptime perf mono mono_raw boot tai x86-tsc\n",
        f"{TRACEFS}/set_event": "",
        f"{TRACEFS}/tracing_on": "1\n",
        f"{TRACEFS}/printk_formats": "",
        f"{TRACEFS}/events/header_page": recorded.header_page,
        f"{TRACEFS}/events/header_event": recorded.header_event,
        "proc/kallsyms": recorded.symbols + "\n",
        "proc/sys/kernel/osrelease": f"{recorded.release}\n",
        "proc/loadavg": "0.10 0.20 0.30 1/100 777\n",
        f"proc/{pid}/status": f"Name:\tx\nUid:\t{uids}\n",
        f"proc/{pid}/task/{pid}/stat": f"{pid} (x) S\n",
    }
    inside = {
        **dict.fromkeys(
            ("tracing_on", "trace", "trace_options", "trace_clock", "tracing_cpumask", "set_event", "set_event_pid"), ""
        ),
        "buffer_size_kb": "1410\n",
    }
    for title, text in recorded.formats.items():
        folder = f"events/{title.replace(':', '/')}"
        files[f"{TRACEFS}/{folder}/format"] = text
        if not title.startswith("ftrace:"):
            inside |= {f"{folder}/{file}": "" for file in ("enable", "filter", "trigger")}
    for cpu in CPUS:
        inside[f"per_cpu/cpu{cpu}/buffer_size_kb"] = "1410\n"
        inside[f"per_cpu/cpu{cpu}/stats"] = STATS.format(0, 0, 0)
    hosttrees.write(root, files | {f"{TEMPLATE}/{path}": text for path, text in inside.items()})
    for cpu in CPUS:
        pages = b"".join(recorded.pages.get(cpu, []))
        (root / TEMPLATE / f"per_cpu/cpu{cpu}/trace_pipe_raw").write_bytes(pages)
    (root / INSTANCES).mkdir()
    return root


def fill_instance(root: Path, path: str) -> None:
    """Fill a new instance as the kernel does; leave other folders empty."""
    if path.startswith(f"/{INSTANCES}/"):
        shutil.copytree(root / TEMPLATE, root / path.lstrip("/"), dirs_exist_ok=True)
        if path.endswith("-all"):
            for raw in (root / path.lstrip("/")).glob("per_cpu/*/trace_pipe_raw"):
                raw.write_bytes(b"")


def empty_instance(root: Path, path: str) -> None:
    """Empty an instance as the kernel does when it is removed."""
    if path.startswith(f"/{INSTANCES}/"):
        for inside in (root / path.lstrip("/")).iterdir():
            shutil.rmtree(inside) if inside.is_dir() else inside.unlink()


def instances(root: Path) -> list[str]:
    return sorted(path.name for path in (root / INSTANCES).iterdir())
