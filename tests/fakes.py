"""A workshop whose measurements are made up and whose agent session has no rights. All else (course, session, walk) is
real."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import random
import re
import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from jitter_workshop.bench.cancel import CancelToken, stop_this_process
from jitter_workshop.bench.placement import choose_cpus
from jitter_workshop.course.loader import builtin_course, load_course
from jitter_workshop.errors import MeasureError
from jitter_workshop.flow.chapters.hunt import Hunt
from jitter_workshop.flow.chapters.session_context import SessionContext
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.measuring.isolated_set import CpuBudget
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Cache, Cpu, Topology
from jitter_workshop.model.host_load import HostLoad
from jitter_workshop.model.run import BESIDE, HUNTED, Progress, Run, RunObserver, RunStarted, ThreadRecord
from jitter_workshop.model.spec import KINDS, Placement, RunSpec
from jitter_workshop.stats import histogram as hg
from jitter_workshop.stats.curve import percentile_curve
from tests import madeup
from tests.fake_agent_connection import FakeAgentConnection
from tests.fakenoise import Picks, Starts

if TYPE_CHECKING:
    import pytest

BLOCKS = 4
FOUR_CPUS = Topology(
    tuple(Cpu(n, 0, n, 0, online=True, allowed=True, smt_siblings=CpuSet((n,))) for n in range(4)),
    (Cache(3, "Unified", 16 << 20, CpuSet.of(range(4))),),
)


@functools.cache
def short_course() -> Path:
    """A course of the three built-in chapters that set nothing of the host, made once a test run. No noise runs beside
    the chapter of pinning, as beside those of a course without company."""
    folder = Path(tempfile.mkdtemp(prefix="jitter-course-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    names = ("01-baseline", "03-migration", "04-pinning")
    for name in names:
        shutil.copytree(builtin_course() / name, folder / name)
    pinning = folder / "04-pinning" / "lesson.toml"
    pinning.write_text(re.sub(r"\[company\]\n(.+\n)+", "", pinning.read_text()))
    listed = ", ".join(f'"{name}"' for name in names)
    head = 'format_version = 1\nid = "jitter"\ntitle = "Where latency jitter comes from"\n'
    (folder / "course.toml").write_text(f"{head}chapters = [{listed}]\n")
    return folder


class FakeContext(SessionContext):
    mount_command = ""
    """The command that mounts the kernel's trace; "" where it is mounted."""

    def standing(self) -> tuple[dict[str, str], ...]:
        """Return what stands on a made host; nothing on the one that the tests run on, whatever somebody has applied
        there."""
        return () if self.root.root == Path("/") else super().standing()


class FakeWorkshop(Workshop):
    """``gate``: when set to an Event, the run waits for it before its third block (a run to interfere with), or before
    the block ``gate_at``."""

    gate: threading.Event | None = None
    gate_at: int = 2
    fail: MeasureError | None = None
    measured = 0
    asked: MeasureRequest | None = None
    look_every_s = 0.01
    context: FakeContext
    reached_gate: threading.Event
    starts: Starts

    hidden: tuple[str, ...] = ("greedy",)
    """The noises that hunts hide, one after the other; then always the last one."""
    loads: tuple[HostLoad, ...] = ()
    """The loads that the looks at the host find, one after the other; then none."""
    refused: tuple[str, ...] = ()
    """Kinds that this host turns out not to be able to make."""

    @classmethod
    def open(cls, session_name: str | None = None, course_dir: Path | None = None, root: Path = Path("/")) -> Self:
        """With the short course, where none is given: the chapters that every host with two CPUs can do. Of the host
        that the tests run on the CPUs are made up: it may have one, or all but one isolated by somebody."""
        course = load_course(course_dir or short_course(), keep=True)
        context = FakeContext.open(course, session_name, HostRoot(root))
        made = cls(course, context)
        made.hunts.hide = made._hide
        if root == Path("/"):
            host = context.host
            context.topology = FOUR_CPUS
            context.look = lambda _: (FOUR_CPUS, host)
            context._room = CpuBudget(4, CpuSet(), reduced=False)
        return made

    def look_at_load(self) -> HostLoad | None:
        """Return what the test says: a load of the machine that the tests run on would come over any screen."""
        found, self.loads = self.loads[:1], self.loads[1:]
        return found[0] if found else None

    def written(self) -> tuple[str, ...]:
        """Return nothing on the host that the tests run on, as ``FakeContext.standing`` does."""
        return () if self.context.root.root == Path("/") else super().written()

    def _hide(self, placement: Placement, allowed: CpuSet, **how: Any) -> Hunt:
        """A hunt whose noise does nothing."""
        self.starts = Starts(*self.refused)
        kind, self.hidden = self.hidden[0], self.hidden[1:] or self.hidden
        return Hunt(placement, allowed, start=self.starts, picker=Picks(*self.refused, kind), **how)

    def measure(
        self,
        request: MeasureRequest,
        observer: RunObserver,
        cancel: CancelToken,
        queued: Callable[[str], None] = lambda sentence: None,
    ) -> Run:
        if self.fail is not None:
            raise self.fail
        self.use_shown_write(request)
        self.measured += 1
        request = self.hunts.beside(request)
        self.asked = request
        seed = self.measured
        blocks = [values(seed * 100 + i, pinned=request.placement != "none") for i in range(BLOCKS)]
        spec = RunSpec("ring", Placement("none"), BLOCKS, 250_000_000)
        observer.started(RunStarted(spec, clock=_run(request, seed, blocks[:1]).clock, tids={}, mlocked=True, notes={}))
        done = 0
        whole = hg.new_histogram()
        for index, block in enumerate(blocks):
            if self.gate is not None and index == self.gate_at:
                self.reached_gate.set()
                while not self.gate.is_set() and not cancel.wait(self.look_every_s):
                    if cancel.take_suspend():
                        stop_this_process()
            if cancel.reason is not None:
                break
            hg.add_counts(whole, madeup.histogram_of(block))
            done = index + 1
            run = _run(request, seed, blocks[:done])
            curve = percentile_curve(whole, request.label, max_ns=max(max(b) for b in blocks[:done]))
            observer.block_done(Progress(run.blocks[-1], done, BLOCKS, curve, (BLOCKS - done) * 0.3, 1_000))
        if not done:
            raise MeasureError("the run was stopped before its first block")
        run, parts = madeup.make_run(blocks[:done], **_fields(request, seed, blocks[:done]), complete=done == BLOCKS)
        self.context.handle.add_run(run, parts)
        self.context.remember(run)
        return run


def values(seed: int, *, pinned: bool, count: int = 1_500) -> list[int]:
    """Latencies with a floor, a shoulder and, unless pinned, a long tail."""
    made = random.Random(seed)
    found = [made.randint(90, 140) for _ in range(count)]
    found += [made.randint(200, 3_000) for _ in range(30)]
    return found + [made.randint(3_000, 9_000 if pinned else 4_000_000) for _ in range(8)]


def open_workshop(
    root: Path = Path("/"), session: str | None = None, course: Path | None = None, **how: object
) -> FakeWorkshop:
    """The fake on a host (this one, or a made tree) in the state folder that the environment names. ``how``: attributes
    of the workshop."""
    workshop = FakeWorkshop.open(session, course, root)
    workshop.reached_gate = threading.Event()
    workshop.context.agent_connection = FakeAgentConnection()
    for name, value in how.items():
        setattr(workshop, name, value)
    return workshop


def walk_with(walk: ChapterWalk, **fields: object) -> ChapterWalk:
    """A walk in the same session through the same chapter with other ``fields``."""
    chapter: Chapter = dataclasses.replace(walk.chapter, **fields)  # type: ignore[arg-type]
    return ChapterWalk(chapter, walk._context)


def _fields(request: MeasureRequest, seed: int, blocks: list[list[int]]) -> dict[str, object]:
    placement = _placement(request)
    count = sum(map(len, blocks))
    threads = []
    for i, (name, place) in enumerate(KINDS[request.workload].threads.items()):
        cpu = getattr(placement, place)
        if cpu is None and (request.placement != "none" or name == "journaller"):
            continue
        part = count * (i + 2) // 5
        at = {"0": part, "1": count - part} if cpu is None else {str(cpu): count}
        threads.append(
            ThreadRecord(
                name, at, 0, 41, 0 if cpu is not None else 12, 0, 0, tid=4_000 + i, cpus=tuple(sorted(map(int, at)))
            )
        )
    return {
        "run_id": f"20260101-{seed:06d}-aaaa",
        "label": request.label or "baseline",
        "started_at": f"2026-01-01T00:{seed:02d}:00.000Z",
        "threads": tuple(threads),
        "noise": request.noise,
        "workload": request.workload,
        "name": KINDS[request.workload].histogram,
        "placement": placement,
        "sched": f"fifo:{request.sched_priority}" if request.sched_priority else "other",
        "pacing": request.pacing or "spin",
        "duty": request.duty,
        "memory": None if request.memory == "none" else request.memory,
        "lock": None if request.lock == "none" else request.lock,
        "notes": {"interrupts": "not asked for", **({HUNTED: BESIDE} if request.hunted else {})},
    }


def stop_in_run(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let the made-up run with this number be stopped most of the time, so that it sends few of its messages."""
    fields = _fields

    def stopped(request: MeasureRequest, seed: int, blocks: list[list[int]]) -> dict[str, object]:
        found = fields(request, seed, blocks)
        if seed == number:
            found["stalls"] = dataclasses.replace(madeup.make_run(blocks)[0].stalls, stolen_ns_per_second=0.95e9)
        return found

    monkeypatch.setattr("tests.fakes._fields", stopped)


def _run(request: MeasureRequest, seed: int, blocks: list[list[int]]) -> Run:
    return madeup.make_run(blocks, **_fields(request, seed, blocks))[0]


def _placement(request: MeasureRequest) -> Placement:
    """The placement that a host with the made-up CPUs would choose, so that a run's threads are where it says."""
    if request.placement == "none":
        return Placement("none", why="made up")
    return dataclasses.replace(choose_cpus(FOUR_CPUS, request.wish(), CpuSet()), why="made up")


def hunt_course(folder: Path) -> Path:
    """A course of the built-in hunt alone."""
    shutil.copytree(builtin_course() / "17-hunt", folder / "17-hunt")
    head = 'format_version = 1\nid = "hunting"\ntitle = "Hunting"\n'
    (folder / "course.toml").write_text(f'{head}chapters = ["17-hunt"]\n')
    return folder
