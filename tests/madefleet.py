"""Made-up answers of the hosts of a fleet: the JSON of ``status`` and ``measure``, in a folder for each host."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jitter_workshop.model.codec import to_plain
from tests.madeup import make_run

CHECKS = ("governor", "thp", "isolation", "smt", "temperature")


def host_facts(name: str, **changed: Any) -> dict[str, Any]:
    return {
        "name": name,
        "kernel": "6.1.0",
        "architecture": "x86_64",
        "cpu_model": "Made CPU",
        "hypervisor": None,
        "cpus_online": [0, 1, 2, 3],
        "packages": 1,
        "smt": False,
        "realtime_kernel": False,
        "recorded": False,
        "emulated": False,
        **changed,
    }


def status_of(name: str, settings: Mapping[str, str | None] | None = None, **facts: Any) -> dict[str, Any]:
    """Return the JSON of ``status``: each check has the value "usual", except those in ``settings``."""
    values = dict.fromkeys(CHECKS, "usual") | dict(settings or {})
    checks = [
        {"id": ident, "title": ident.upper(), "state": "unavailable" if value is None else "ok", "value": value}
        for ident, value in values.items()
    ]
    return {"format_version": 1, "host": host_facts(name, **facts), "checks": checks, "summary": {}, "hot_cpus": [1]}


def run_of(name: str, run: int, factor: float = 1.0, seed: int = 0, **changed: Any) -> dict[str, Any]:
    """Return the JSON of ``measure``: latencies around 100 ns times ``factor``. ``changed``: other fields."""
    chance = random.Random(f"{name} {run} {seed}")
    luck = math.exp(chance.gauss(0, 0.05)) * factor
    values = [round((100 + i % 20) * luck) for i in range(2_000)] + [round(9_000 * luck)] * 10
    made, _ = make_run([values], run_id=f"20260101-{run:06d}-{name}", host=host_facts(name), **changed)
    plain: dict[str, Any] = to_plain(made)
    return plain


def write_answer(folder: Path, name: str, answer: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(answer if isinstance(answer, str) else json.dumps(answer), "utf-8")
    return path


def write_fleet(folder: Path, hosts: Iterable[str], runs: int = 5, slow: Mapping[str, float] | None = None) -> Path:
    """Write the answers of hosts below a folder. ``slow``: host → how many times its latencies are as long."""
    for name in hosts:
        write_answer(folder / name, "status.json", status_of(name))
        for run in range(runs):
            write_answer(folder / name, f"run{run}.json", run_of(name, run, (slow or {}).get(name, 1.0)))
    return folder
