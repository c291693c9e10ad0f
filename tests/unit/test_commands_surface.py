"""Check the texts made of the parsers: completions and the man page name each verb and option, safely quoted."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop import cli
from jitter_workshop.commands import completions
from jitter_workshop.commands.common import manpage, shells, surface
from jitter_workshop.commands.common.base import VERBS
from jitter_workshop.commands.common.surface import Option, Value, Verb
from jitter_workshop.model.noise import NOISE_KINDS

ODD = st.text(st.sampled_from("ab-.'\"\\:[](){}$`%@#;| \t"), max_size=20)


@pytest.fixture(scope="module")
def verbs() -> tuple[Verb, ...]:
    return surface.verbs()


def test_each_verb_is_there_once_after_the_workshop_itself(verbs: tuple[Verb, ...]) -> None:
    assert [verb.name for verb in verbs] == ["", *VERBS]
    own = {flag for option in verbs[0].options for flag in option.flags}
    assert {"--plain", "--chapter", "--version", "--help", "--session"} <= own
    assert {verb.name for verb in verbs if verb.command} == {"apply", "prove", "explain", "watch", "practice", "class"}


@pytest.mark.parametrize(
    ("verb", "now", "before"),
    [
        ("plan", "--next-boot", "--once"),
        ("apply", "--next-boot", "--once"),
        ("restore", "--discard", "--forget"),
        ("measure", "--for-percentile", "--solid"),
    ],
)
def test_an_earlier_name_of_an_option_is_not_shown(verb: str, now: str, before: str, verbs: tuple[Verb, ...]) -> None:
    (found,) = (one for one in verbs if one.name == verb)
    flags = [flag for option in found.options for flag in option.flags]
    assert flags.count(now) == 1
    assert before not in flags
    assert before not in found.usage


@pytest.mark.parametrize(
    ("verb", "flag", "kind", "word"),
    [
        ("status", "--explain", "words", "governor"),
        ("measure", "--noise", "words", NOISE_KINDS[0]),
        ("measure", "--duty", "words", "50"),
        ("practice", "--shape", "words", "server"),
        ("class", "--chapter", "words", "pinning"),
        ("measure", "--root", "folder", ""),
        ("apply", "--profile", "file", ""),
        ("watch", "--sign", "file", ""),
        ("watch", "-o", "folder", ""),
        ("measure", "--label", "text", ""),
    ],
)
def test_the_value_of_an_option_is_known(verb: str, flag: str, kind: str, word: str, verbs: tuple[Verb, ...]) -> None:
    (found,) = (
        value
        for one in verbs
        if one.name == verb
        for option, value in surface.taking_values(one)
        if flag in option.flags
    )
    assert found.kind == kind
    assert word in found.words if word else not found.words


@pytest.mark.parametrize(
    ("verb", "number", "word"),
    [
        ("plan", 0, "thp"),
        ("prove", 0, "placement"),
        ("practice", 0, "scenarios"),
        ("practice", 1, "crowd"),
        ("lessons", 1, "pinning"),
        ("class", 0, "turn"),
        ("class", 1, "freeze"),
        ("completions", 0, "fish"),
    ],
)
def test_words_that_are_no_options_are_known(verb: str, number: int, word: str, verbs: tuple[Verb, ...]) -> None:
    (found,) = (one for one in verbs if one.name == verb)
    assert word in found.words[number][0].words


@pytest.mark.parametrize("shell", completions.SHELLS)
def test_each_shell_has_each_verb_and_option(
    shell: str, verbs: tuple[Verb, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["completions", shell]) == 0
    said = capsys.readouterr().out
    assert said == shells.SHELLS[shell](verbs)
    assert not re.search(r"@[A-Z]+@", said)
    for verb in verbs:
        assert re.search(rf"(?<![\w-]){verb.name}(?![\w-])", said)
        for option in verb.options:
            for flag in option.flags:
                shown = flag if shell != "fish" else f"-l {flag[2:]} " if flag.startswith("--") else f"-s {flag[1:]} "
                assert shown in said, (verb.name, flag)
    assert set(shells.SHELLS) == set(completions.SHELLS)


def test_the_man_page_has_each_verb_option_and_word(
    verbs: tuple[Verb, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["man"]) == 0
    page = capsys.readouterr().out
    assert page == manpage.man_page(verbs, cli.__version__)
    for verb in verbs[1:]:
        _, _, part = page.partition(f"\n.SS {verb.name.replace('-', chr(92) + '-')}\n")
        part = part.partition("\n.S")[0]
        for option in verb.own:
            assert all(f"\\fB{flag.replace('-', chr(92) + '-')}\\fR" in part for flag in option.flags)
        assert all(f".I {value.name}" in part for value, _ in verb.words)
    requests = {line.split()[0] for line in page.splitlines() if line.startswith((".", "'"))}
    assert requests == {".TH", ".SH", ".SS", ".B", ".I", ".TP", ".PP", ".br", ".nf", ".fi", ".sp"}


@given(ODD, ODD)
def test_no_text_becomes_a_request_of_roff(said: str, doc: str) -> None:
    verb = Verb("v", said, "", doc, (Option(("--x",), Value("FILE", "file"), said),), (), False)
    plain = manpage.man_page(
        [verb, Verb("v", "line", "", "", (Option(("--x",), Value("FILE", "file"), "x"),), (), False)], "1"
    )
    known = (".TH ", ".SH ", ".SS ", ".B ", ".I ", ".TP", ".PP", ".br", ".nf", ".fi", ".sp")
    assert all(line.startswith(known) for line in plain.splitlines() if line.startswith((".", "'")))


@given(ODD)
def test_a_quoted_text_has_no_end_inside(said: str) -> None:
    """In single quotes, POSIX shells read all but a quote as it is; fish also reads a backslash before a quote or a
    backslash."""
    assert re.fullmatch(r"'(?:[^']|'\\'')*'", shells._quoted(said))
    assert shells._quoted(said)[1:-1].replace("'\\''", "'") == said
    assert re.fullmatch(r"'(?:[^'\\]|\\['\\])*'", shells._fish(said))
    assert re.sub(r"\\(.)", r"\1", shells._fish(said)[1:-1]) == said


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completions", "tcsh"]) == 2
    assert "bash" in capsys.readouterr().err
