"""A report as Markdown: all that it says, in order, and nothing that anybody named becomes markup."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from jitter_workshop.model.report import ReportDocument, ReportedChange
from jitter_workshop.model.text import called, clean
from jitter_workshop.report import markdown as md
from jitter_workshop.report import markdown as page
from jitter_workshop.report.blocks import Facts, name_span
from jitter_workshop.report.proof_words import NO_ROUND
from jitter_workshop.report.sections import opening_blocks
from jitter_workshop.stats.scale import nice_ns
from tests.madereports import HOSTILE, bare, rich

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
"""GitHub's flavour but for its autolinks, which the tests look for in the text themselves."""

LINKED = re.compile(r"@\w|://|www\.|#\d|\bGH-\d|:\w+:|\$", re.IGNORECASE)


def tokens(text: str) -> Iterator[Token]:
    for token in PARSER.parse(text):
        yield token
        yield from token.children or ()


def shown(text: str) -> str:
    """Return what a reader sees."""
    return "".join(one.content for one in tokens(text) if one.type in ("text", "code_inline", "text_special"))


def markup(text: str) -> set[str]:
    return {one.type for one in tokens(text)}


PLAIN = {"paragraph_open", "inline", "text", "code_inline", "text_special", "paragraph_close"}


@given(st.text(max_size=60) | st.text(alphabet="`*_[]()<>#|~\\&;:@!$-+=1.x \n\t", max_size=40))
def test_a_sentence_is_shown_as_it_is_and_makes_no_markup(text: str) -> None:
    told = md.markdown_line(text)
    assert "\n" not in told
    assert shown(told).strip() == clean(text, md.LONG)
    assert markup(told) <= PLAIN
    for one in tokens(told):
        if one.type == "text":
            assert not LINKED.search(one.content)


@given(st.text(max_size=60) | st.text(alphabet="`| \\x", min_size=1, max_size=12))
def test_a_name_is_one_code_span(text: str) -> None:
    told = md.inline_markdown(name_span(text))
    assert [one.content for one in tokens(told) if one.type == "code_inline"] == [called(text)]
    assert markup(told) == PLAIN - {"text", "text_special"}


@given(st.lists(st.text(alphabet="`|\\x *_<", min_size=1, max_size=8), min_size=2, max_size=4))
def test_a_table_keeps_its_cells(texts: list[str]) -> None:
    names = [md.inline_markdown(name_span(text)) for text in texts]
    told = md.markdown_table(["head"] * len(texts), [names, texts])
    rows = [one for one in PARSER.parse(told) if one.type == "inline"][len(texts) :]
    assert len(rows) == 2 * len(texts)
    for text, cell in zip(texts, rows[: len(texts)], strict=True):
        assert "".join(c.content for c in cell.children or ()) == (clean(text) or "(no visible name)")
    for text, cell in zip(texts, rows[len(texts) :], strict=True):
        assert "".join(c.content for c in cell.children or ()) == clean(text)


@given(st.lists(st.text(alphabet="`~x ", max_size=12), min_size=1, max_size=3))
def test_a_block_of_code_ends_where_it_should(lines: list[str]) -> None:
    (block,) = PARSER.parse(md.fenced(lines, "sh"))
    assert block.type == "fence"
    assert block.content.splitlines() == [md.clean_line(one) for one in lines]


@pytest.mark.parametrize(
    "text", ["- x", "+ x", "1. x", "1) x", "# x", "#", "> x", "=====", "---", "***", "___", "0.5 s"]
)
def test_no_sentence_begins_a_block(text: str) -> None:
    assert markup(md.markdown_line(text)) <= PLAIN
    assert markup(md.bullets([text])) <= PLAIN | {
        "bullet_list_open",
        "bullet_list_close",
        "list_item_open",
        "list_item_close",
    }


@pytest.mark.parametrize("text", ["x", "x #", "x ##", "#", "- x", "a `b` c"])
def test_a_heading_is_one(text: str) -> None:
    found = [one.type for one in PARSER.parse(md.markdown_heading(2, text))]
    assert found == ["heading_open", "inline", "heading_close"]
    assert shown(md.markdown_heading(2, text)) == text


@pytest.mark.parametrize(
    "word", ["@everyone", "x@y.org", "https://a.b", "www.a.b", "#1", "a/b#12", "GH-1", ":tada:", "$x$"]
)
def test_a_word_that_github_would_link_stands_in_code(word: str) -> None:
    told = md.markdown_sentence(f"one {word} two")
    assert [one.content for one in tokens(told) if one.type == "code_inline"] == [word]


def everything() -> ReportDocument:
    """With a write of each kind in it, which the made report may not have."""
    changed = ReportedChange(
        "2026-01-01T00:10:00.000000Z",
        "irq-affinity",
        f"/proc/irq/{HOSTILE[8]}",
        HOSTILE[0],
        "1",
        "2",
        "restored",
        "2026-01-01T00:20:00.000000Z",
        "given back when the workshop was left",
        chapter="irqs",
    )
    refused = dataclasses.replace(
        changed, fate="refused", fate_at=None, read_back=None, chapter="", text="the kernel said EPERM"
    )
    return dataclasses.replace(rich(), changes=(changed, refused))


@pytest.fixture(scope="module")
def text() -> str:
    return page.files(everything(), None, (), "out.md")["out.md"].decode()  # type: ignore[arg-type]


def test_the_hosts_line_says_of_which_moment_it_is() -> None:
    def of(document: ReportDocument) -> list[str]:
        (facts,) = (one for one in opening_blocks(document) if isinstance(one, Facts))
        return [head for head, _ in facts.rows]

    assert of(rich())[0] == "Host, when the newest run was made"
    assert of(dataclasses.replace(rich(), runs=()))[0] == "Host"


def test_the_parts_stand_in_the_order_of_the_page(text: str) -> None:
    heads = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert heads == [
        "Curves",
        "Verdicts",
        "Who took the time",
        "Changes",
        "Chapters and guesses",
        "Status before and after",
        "Still open",
        "How to repeat this",
        "Runs",
        "Lines between CPUs",
        "Host",
        "The session's own record: 25 lines",
        "About this report",
    ]
    assert text.count("\n# ") == 0
    assert text.startswith("# ")
    first = text.splitlines()[2:5]
    assert first[0].startswith("- **▼ lower** Proven of `irq-affinity`: stalls over 100 µs: 21× rarer")
    assert first[1].startswith("- **? cannot tell** Not proven of `thp=never`: ")


def test_nothing_hostile_becomes_markup(text: str) -> None:
    found = list(tokens(text))
    kinds = {one.type for one in found}
    assert not kinds & {
        "html_block",
        "html_inline",
        "link_open",
        "em_open",
        "s_open",
        "code_block",
        "ordered_list_open",
    }
    pictures = [one for one in found if one.type == "image"]
    assert [one.attrs["src"] for one in pictures] == [f"out-chart-{n}.svg" for n in (1, 2, 3)]
    for one in found:
        if one.type == "text":
            assert not LINKED.search(one.content), one.content
    assert "\x1b" not in text
    assert "\x00" not in text
    assert "\u202e" not in text
    for hostile in HOSTILE[:4]:
        assert clean(hostile, 60) in shown(text)


def test_the_figures_are_the_reports(text: str) -> None:
    report = everything()
    runs = text.partition("## Runs")[2].partition("## Host")[0]
    parts = runs.split("\n\n")
    (figures,) = (part.splitlines()[2:] for part in parts if part.startswith("| run"))
    measured = next(part for part in parts if part.startswith("- ")).splitlines()
    assert len(figures) == len(measured) == len(report.runs)
    for run, line, how in zip(report.runs, figures, measured, strict=True):
        assert run.histogram is not None
        values = [cell.strip(" ·~") for cell in re.split(r"(?<!\\)\|", line)][2:-4]
        known = [value for value in run.histogram.percentiles.values() if value is not None]
        assert values[: len(known)] == [nice_ns(value) for value in known]
        assert f": `{run.id}`" in how
        assert f"; ring, quick, placement {run.placement}; 2026-01-01 00:00 UTC, 500 ms" in how
    for proof in report.proofs:
        for row in proof.judgement.rows if proof.judgement else ():
            assert row.measure[:3] in text
    judged = report.proofs[0].judgement
    assert judged is not None
    assert f"**▼ lower** {judged.headline.text}" in text
    assert "| stalls over 100 µs | **▼ lower**       |  1/21 | 1/27 to 1/16    |   45.3/s |    2.22/s |" in text
    assert "stalls over 100 µs    ├●─┤                ┊│┊" in text


def test_each_write_has_its_outcome_in_the_report(text: str) -> None:
    line = next(
        one for one in text.splitlines() if one.startswith("| irq-affinity; 2026-01-01 00:10 UTC, in chapter irqs")
    )
    assert "**differs from the written value**" in line
    assert "**restored** 2026-01-01 00:20 UTC; given back when the workshop was left" in line
    assert "**refused**; the kernel said EPERM" in text


def test_percentiles_of_few_samples_are_marked_in_the_tables(text: str) -> None:
    few = [line for line in text.splitlines() if line.startswith("| ") and "263 µs ·" in line]
    # In the table of a chart's curves, and in that of the runs.
    assert len(few) == 2
    assert "· marks a percentile with fewer than ten samples beyond it; the chart draws it dotted." in text
    assert "– ·" not in text
    assert r"\~ a percentile with fewer than ten distinct stalls" in text


def test_few_rounds_are_no_verdict(text: str) -> None:
    assert "A verdict needs 10 rounds. This proof has 3," in text
    assert "Ended early: interrupted after 3" in text
    assert "after 3 of 10 rounds" in text
    assert f"**{NO_ROUND}.**" in text


def test_commands_are_blocks_of_shell(text: str) -> None:
    blocks = [one.content for one in PARSER.parse(text) if one.type == "fence" and one.info == "sh"]
    assert blocks == [f"{one.command}\n" for one in rich().commands]


def test_on_standard_output_there_are_no_pictures() -> None:
    found = page.files(rich(), None, (), "")  # type: ignore[arg-type]
    assert list(found) == [""]
    told = found[""].decode()
    assert "![" not in told
    assert "The charts are left out here" in told
    assert "| `laptop` (published 2015)" in told


def test_files_lie_beside_each_other_and_are_linked(tmp_path: Path) -> None:
    found = page.files(rich(), None, (), "my report (1).md")  # type: ignore[arg-type]
    assert list(found) == ["my report (1).md", *(f"my report (1)-chart-{n}.svg" for n in (1, 2, 3))]
    assert b"](my%20report%20%281%29-chart-1.svg)" in found["my report (1).md"]
    assert all(content.startswith(b"<svg ") for name, content in found.items() if name.endswith(".svg"))


def test_a_session_with_next_to_nothing() -> None:
    text = page.markdown_text(bare(), {})
    assert "a recorded host (a recorded laptop). It shows the host's settings; nothing was measured.**" in text
    assert "Nothing was proven in this session." in text
    assert "Status before: this session is older" in text
    assert "Nothing was measured." in text
    assert "None" not in text


@given(st.text(max_size=200))
def test_any_title_and_note(text: str) -> None:
    report = dataclasses.replace(bare(), title=text, session_name=text, notes={"before": text, "x": text})
    told = page.markdown_text(report, {})
    assert {one.type for one in tokens(told)}.isdisjoint({"html_block", "html_inline", "link_open", "em_open", "image"})
