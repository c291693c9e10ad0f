"""The terms of a page, and where the built-in course introduces them."""

from __future__ import annotations

import runpy
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.course.loader import load_course
from jitter_workshop.model.spec import KINDS
from jitter_workshop.plain.talk import Talk
from jitter_workshop.presenter.text.glossary import (
    NONE,
    Term,
    fitting_term_lines,
    found,
    index_of_term,
    term_lines,
    terms,
)
from jitter_workshop.presenter.text.prose import prose

REPOSITORY = Path(__file__).resolve().parents[2]
WRITTEN = tomllib.loads((REPOSITORY / "assets" / "glossary.toml").read_text())["section"]
INTRODUCED = {one["term"]: one["introduced"] for section in WRITTEN for one in section["term"] if "introduced" in one}


def named(text: str) -> list[str]:
    return [one.term for one in found(text)]


def test_the_terms_of_a_page_come_in_its_order_and_are_whole_words() -> None:
    assert named("Steal on the hot\n   CPUs: the TLB is cold.") == ["steal", "hot CPU", "TLB"]
    assert named("stealth, /sys/fs/cgroup/a, tsc, cyclictest") == []
    assert named("p99.9 and p99") == ["percentile, p99.9"]
    assert named("A ring. Rings.") == ["ring"]


def test_each_term_is_explained_once_and_in_the_width() -> None:
    lines = [line.plain for line in term_lines("A ring and a knee and a ring", 40)]
    assert max(map(len, lines)) <= 40
    assert [line.strip().split(":")[0] for line in lines if line.startswith(("  ring:", "  knee:"))] == ["ring", "knee"]
    assert NONE in " ".join(line.plain for line in term_lines("nothing", 100))


@given(st.sampled_from([one for one in terms() if one.also]), st.text(st.sampled_from("ab .,\n"), max_size=20))
def test_a_term_is_found_wherever_it_stands(term: Term, around: str) -> None:
    assert term in found(f"{around} {term.also[0]} {around}")


def test_the_document_is_the_files_and_each_term_stands_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(REPOSITORY / "scripts")
    made = runpy.run_path(str(REPOSITORY / "scripts" / "glossary.py"))
    assert made["main"]() == 0
    words = [one.term for one in terms()]
    assert len(words) == len(set(words))
    known = {"term", "meaning", "not", "also", "introduced"}
    assert all(set(one) <= known for section in WRITTEN for one in section["term"])


def test_the_first_page_of_the_course_has_no_word_of_the_machine_without_a_meaning() -> None:
    page = load_course().chapters[0].pages["look"]
    shown = " ".join(line.plain for line in prose(page, 76))
    assert {"cache line", "firmware", "kernel thread"} <= set(named(shown))


def test_the_threshold_of_a_stall_is_that_of_the_workloads() -> None:
    told = next(one.meaning for one in terms() if one.term == "stall")
    assert {KINDS[workload].threshold_ns for workload in ("ring", "spin")} == {1_000}
    assert "the threshold: usually 1 µs in a run of ring or spin" in told


def test_the_words_of_this_project_are_one_page() -> None:
    own = [one for one in terms() if not one.of_field]
    assert len(own) <= 65
    assert [one.term for one in own if not one.unlike] == []
    assert [one.term for one in own if len(one.meaning + one.unlike) > 220] == []


def paragraphs() -> Iterator[tuple[str, str]]:
    """Yield where a paragraph of the course stands, and the paragraph, in the order in which a learner reads them."""
    for chapter in load_course().chapters:
        for step in chapter.steps:
            for one in chapter.pages[step].split("\n\n"):
                yield f"{chapter.id}, {step}", " ".join(one.replace("**", "").replace("*", "").split())


@pytest.mark.parametrize("term", [one for one in terms() if one.term in INTRODUCED], ids=lambda one: one.term)
def test_a_term_is_introduced_where_the_course_uses_it_first(term: Term) -> None:
    where, text = next((where, text) for where, text in paragraphs() if index_of_term(term, text) is not None)
    assert INTRODUCED[term.term] in text, f"{where}: {text}"


def test_the_word_g_explains_the_terms_since_the_last_answer() -> None:
    answers, said = iter(["g", "x", "g", ""]), []
    talk = Talk(lambda _: next(answers), said.append, 80)
    talk.say("The knee.")
    assert talk.ask("go on") == "x"
    assert "knee: " in "".join(said)
    said.clear()
    talk.say("A ring.")
    assert talk.ask("go on") == ""
    assert "ring: " in "".join(said)
    assert "knee: " not in "".join(said)


@given(st.integers(20, 100), st.integers(0, 40))
def test_terms_beside_a_page_are_whole_and_fit(width: int, rows: int) -> None:
    text = "A workload makes a stall; the hot CPU is busy, the knee moves, and the noise of a block is in the ring."
    shown = [line.plain for line in fitting_term_lines(text, width, rows)]
    assert len(shown) <= rows
    assert all(len(line) <= width for line in shown)
    whole = [line.plain for line in fitting_term_lines(text, width, 1_000)]
    assert len(found(text)) == sum(not line.startswith("  ") for line in whole)
    at = iter(whole)
    assert all(line in at for line in shown), "in the same order"
    for line, after in pairwise([*whole, ""]):
        if line in shown and after.startswith("  "):
            assert after in shown, "no term is cut"
