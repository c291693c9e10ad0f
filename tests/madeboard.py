"""Made-up work of a class's members."""

from __future__ import annotations

from jitter_workshop.model.board import Posted, PostedChapter, PostedRun
from jitter_workshop.model.session import Guess


def run(ident: str = "r1", p999: int = 50_000, chapter: str = "pinning", at: str = "2026-01-01T10:00:00Z") -> PostedRun:
    points = ((50.0, 100), (99.0, 2_000), (99.9, p999), (99.99, 2 * p999))
    return PostedRun(ident, f"run {ident}", chapter, "measure", "ring", at, points, 1_000.0)


def work(*runs: PostedRun, done: bool = False, step: str = "compare", people: tuple[str, ...] = ()) -> Posted:
    chapter = PostedChapter("pinning", step, done, True, False, 1, Guess(percentile="99.9", value_ns=80_000))
    return Posted("lab", people, "pinning", step, (chapter,), runs)
