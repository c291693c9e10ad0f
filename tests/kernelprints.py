"""Read the text that a kernel prints of its trace (the file ``trace`` of an instance), to compare with what we read of
its pages."""

from __future__ import annotations

import re
from typing import NamedTuple

from jitter_workshop.model.trace import IN_IRQ, IN_SOFTIRQ, TraceEvent

ENTRY = re.compile(r"-(\d+)\s+\[(\d+)\]\s+(\S{5,7})\s+(\d+): (?:(\w+): |<stack trace>)")
"""The beginning of an entry after its task's name, which may hold any characters."""


class Printed(NamedTuple):
    ts: int
    pid: int
    flags: int
    event: str
    rest: str


def printed(text: str) -> dict[int, list[Printed]]:
    """The kernel's own printing, by CPU."""
    found: dict[int, list[Printed]] = {}
    starts = list(ENTRY.finditer(text))
    for match, after in zip(starts, [*starts[1:], None], strict=True):
        pid, cpu, letters, ts, event = match.groups()
        flags = IN_IRQ * bool(set(letters) & set("hHzZ")) | IN_SOFTIRQ * bool(set(letters) & set("sH"))
        rest = text[match.end() : after.start() if after else None]
        found.setdefault(int(cpu), []).append(Printed(int(ts), int(pid), flags, event or "stack", rest))
    return found


def says(event: TraceEvent, line: Printed) -> bool:
    """Return True if the line says what the event says."""
    e, rest = event, line.rest
    ours = {
        "migrate": f"comm={e.name} pid={e.a} ",
        "waking": f"comm={e.name} pid={e.a} ",
        "irq_entry": f"irq={e.a} name={e.name}\n",
        "irq_exit": f"irq={e.a} ret",
        "softirq_entry": f"vec={e.a} [action={e.name}]",
        "softirq_exit": f"vec={e.a} [action={e.name}]",
        "vector_entry": f"vector={e.a}\n",
        "vector_exit": f"vector={e.a}\n",
        "work_start": f": function {e.name}\n",
        "work_end": f": function {e.name}\n",
        "timer_entry": f"function={e.name} ",
        "timer_exit": "hrtimer=",
        "csd_entry": f"func={e.name}, ",
        "csd_exit": f"func={e.name}, ",
        "frequency": f"state={e.a} cpu_id={e.b}\n",
        "idle": f"state={e.a % (1 << 32)} cpu_id={e.b}\n",
        "fault": f"error_code=0x{e.b:x}\n",
        "ipi_send": f"cpu={e.a} ",
        "nmi": f"{e.name}() delta_ns: {e.a} ",
        "tick_stop": f"success={e.a} dependency={e.name or 'NONE'}\n",
    }
    if e.kind == "switch":
        first = f"prev_comm={e.other} prev_pid={e.pid} "
        runs = re.search(r"prev_state=(\S+) ==>", rest)
        last = f"next_comm={e.name} next_pid={e.a} "
        if first not in rest or last not in rest or runs is None:
            return False
        return e.b == (runs[1][0] == "R") and (e.c & 0xFF == 0 if e.b else chr(e.c & 0xFF) in runs[1])
    if e.kind == "stack":
        frames = re.findall(r"=> (.+)", rest)
        names = [frame.partition("+")[0] for frame in e.name.split(";")]
        return names == frames[len(frames) - len(names) :]
    if line.event == "ipi_send_cpumask":
        return e.kind == "ipi_send" and f"callback={e.name}+0x0/" in rest
    if e.kind == "ipi_send" and ("callback=0x0" in rest) != (e.name == ""):
        return False
    if e.kind == "ipi_send" and e.name and f"callback={e.name}+0x0/" not in rest:
        return False
    if e.kind in ("migrate", "waking"):
        more = f"orig_cpu={e.b} dest_cpu={e.c}\n" if e.kind == "migrate" else f"target_cpu={e.b:03d}\n"
        return ours[e.kind] in rest and more in rest
    if e.kind.startswith("vector") and line.event != e.name + e.kind.removeprefix("vector"):
        return False
    return ours[e.kind] in rest
