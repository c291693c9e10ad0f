"""Test the report's command lines: this program accepts each of them."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.cli import VERBS, verb_parser
from jitter_workshop.flow.reporting.build import build_report
from jitter_workshop.flow.reporting.commands import measure_command
from jitter_workshop.flow.reporting.subject import subject_of
from jitter_workshop.model.proof import Proof
from jitter_workshop.model.session import ChapterProgress
from jitter_workshop.session.store import OpenSession, SessionStore
from tests import madereports

MakeRun = Callable[..., tuple[Any, Any]]


def parsed(command: str) -> argparse.Namespace:
    """A line of shell as its verb's parser takes it; what the parser refuses ends the test."""
    program, first, *words = shlex.split(command)
    assert program == "jitter-workshop"
    verb = first if first in VERBS else "workshop"
    module: Any = importlib.import_module(f"jitter_workshop.commands.{verb}")
    parser = verb_parser(verb, module.__doc__)
    module.add_arguments(parser)
    return parser.parse_args(words if first in VERBS else [first, *words])


@pytest.fixture
def session(make_run: MakeRun, tmp_path: Path) -> OpenSession:
    """Runs of each workload, with and without a preset, a chapter, settings, and proofs of three kinds."""
    opened = SessionStore(tmp_path / "sessions").create("monday", "lab03")
    kinds: tuple[dict[str, Any], ...] = (
        {"label": "-x", "applied": ({"id": "thp", "value": "never"},)},
        {"label": "two words", "preset": None, "duration_s": 1.0131},
        {"label": "$(id)", "pacing": "schedule", "interval_ns": 25_000},
        {"workload": "spin", "preset": "standard"},
    )
    for number, kind in enumerate(kinds):
        opened.add_run(*make_run([[100] * 50, [100] * 50], run_id=f"2026010{number + 1}-000000-aaaa", **kind))
    ids = opened.session.runs
    chapter = ChapterProgress("compare", runs={"measure": ids[0], "again": ids[1]})
    opened.save(dataclasses.replace(opened.session, chapters={"pinning": chapter}))
    for ident, more in (
        ("20260101-010000-beef", {"subject": "thp=never", "preset": "standard"}),
        ("20260101-020000-beef", {"subject": "placement", "preset": "", "duration_s": 2.5}),
        ("20260101-030000-beef", {"subject": "irq-affinity"}),
    ):
        made: Proof = madereports.made_proof(ident, rounds=3)
        opened.add_proof(dataclasses.replace(made, **more))  # type: ignore[arg-type]
    return opened


def test_every_line_of_a_rich_session_is_taken_by_its_verb(session: OpenSession) -> None:
    commands = [one.command for one in build_report(subject_of(session)).commands]
    verbs = {shlex.split(line)[1] for line in commands}
    assert {"status", "measure", "plan", "apply", "restore", "compare", "prove", "report"} <= verbs
    for line in commands:
        parsed(line)


def test_a_proof_is_asked_for_as_it_was(session: OpenSession) -> None:
    proofs = [parsed(one.command) for one in build_report(subject_of(session)).commands if " prove " in one.command]
    assert [(p.words, p.preset, p.duration_s) for p in proofs] == [
        (["thp=never"], "standard", None),
        (["placement"], None, 2.5),
        (["irq-affinity"], None, None),
    ]


@pytest.mark.parametrize(
    ("measured", "asked"),
    [(1.0131, "1"), (0.2502, "0.25"), (5.03, "5"), (12.52, "12.5"), (30.2, "30"), (120.9, "120"), (1_234.5, "1230")],
)
def test_a_run_is_asked_for_by_the_length_that_was_wanted(make_run: MakeRun, measured: float, asked: str) -> None:
    words = measure_command(make_run([[100] * 50], preset=None, duration_s=measured)[0])
    assert words[words.index("--duration") + 1] == asked
