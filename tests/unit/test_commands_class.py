"""``class`` with what makes no sense, and where there is no class: one sentence with what to do, exit code 2, and no
output."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from jitter_workshop import paths
from jitter_workshop.classroom import client
from jitter_workshop.cli import main
from jitter_workshop.commands.common.base import verb_parser

NO_CLASS = "class host"
MAKES_ONE = "'sudo jitter-workshop class init' makes it a class host"


@pytest.fixture(autouse=True)
def no_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "CLASS_FILE", str(tmp_path / "class.toml"))
    monkeypatch.setattr(client, "SOCKET", str(tmp_path / "board.sock"))


def refused(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["class", *shlex.split(words)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("jitter-workshop: ")
    assert said.err.count("\n") == 1
    return said.err.removeprefix("jitter-workshop: ").rstrip("\n")


def test_verbs_do_not_lead_to_a_chapter_that_the_class_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    Path(paths.CLASS_FILE).write_text('name = "a"\nhot_cpus = "1"\nchapters = ["baseline", "pinning"]\n')
    said = refused("present --chapter governor", capsys)
    assert said.startswith("governor is not a chapter")
    assert said.endswith("one of baseline, pinning")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "'class' alone does nothing; use one of init, check,"),
        ("bogus", "there is no 'class bogus'; use one of init, check,"),
        ("turn bogus", "there is no 'class turn bogus'; one of take, give, end, freeze, thaw"),
        ("turn take extra", "'class turn take' takes no more words"),
        ("turn end a b", "'class turn end' takes one name"),
        ("turn take --wait -5", "--wait must be a number of seconds, 0 or more"),
        ("turn take --wait nan", "argument --wait: not a finite number"),
        ("turn take --", "a command must follow --"),
        ("turn end -- true", "'class turn end' takes no command; see"),
        ("turn freeze --wait 5", "'class turn freeze' takes no --wait; see"),
        ("turn --csv", "'class turn' takes no --csv; see"),
        ("check --file x", "'class check' takes no --file; see"),
        ("check x", "'class check' takes no words; see"),
        ("board -- true", "'class board' takes no command; see"),
        ("board --chapter bogus", "there is no chapter 'bogus'; one of baseline, governor,"),
        (
            "board --chapter pinning --json",
            "--chapter draws only curves; leave out --chapter: --csv and --json have every chapter",
        ),
        ("board --csv --json", "--csv and --json contradict each other; use only one of these options"),
        ("board --machine", "--machine is another form of --json; add --json"),
        ("board --machine --csv", "--machine is another form of --json; add --json"),
        ("board --session nosuch", "'class' takes no --session; a class is for the whole machine"),
        ("results --yes", "--yes is only for --forget-all; leave it out"),
        ("results --csv --json", "--csv and --json contradict each other; use only one of these options"),
        ("results --csv --json --forget zzz", "--csv prints results, but --forget prints only a number; "),
        ("results --forget zzz --yes", "--yes is only for --forget-all; leave it out"),
        (f"present {'x' * 121}", "the text has 121 characters; at most 120 are allowed; shorten it"),
        ("board --step look", "--step needs a chapter; name the chapter with --chapter ID"),
        ("results --forget-all", "this deletes the results of all members; use --yes"),
        (
            "results --forget x --forget-all",
            "--forget names one member, --forget-all means all; use only one of these options",
        ),
        ("present", "there is nothing to show; give words, or --chapter ID, or --clear"),
        ("present --step look", "--step needs a chapter; name the chapter with --chapter ID"),
        ("present --chapter bogus", "there is no chapter 'bogus'; one of baseline, governor,"),
        ("present --chapter pinning --step bogus", "there is no step 'bogus' in pinning; one of look, predict,"),
        ("present --clear words", "--clear removes what is shown, so it takes no text and no chapter"),
        ("present --clear --step look", "--clear removes what is shown, so it takes no text and no chapter"),
        ("bundle", "the archive needs a file name; -o FILE.tar.gz"),
        ("bundle --file /nonexistent -o x.tar.gz", "there is no /nonexistent"),
        ("init --file /nonexistent", "there is no /nonexistent"),
        ("collect", "give one folder; "),
        ("collect ''", "give one folder; "),
        ("collect a b", "give one folder; "),
        ("collect /nonexistent", "there is no folder /nonexistent"),
        ("collect . --csv --json", "--csv and --json contradict each other; use only one of these options"),
        ("collect . --chapter pinning --json", "--chapter draws only curves; "),
        ("collect . --chapter bogus", "there is no chapter 'bogus'; one of baseline, governor,"),
        ("collect . --step look", "--step needs a chapter; name the chapter with --chapter ID"),
    ],
)
def test_the_verb_class_refuses_invalid_words_in_one_sentence(
    words: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refused(words, capsys).startswith(sentence)


@pytest.mark.parametrize(
    "words",
    [
        *("turn", "turn --json", "turn take", "turn take --wait 1 -- true", "turn give", "turn end", "turn end ada"),
        *("turn freeze", "turn thaw", "board", "board --json --machine", "board --chapter pinning", "results"),
        *("results --csv", "results --forget ada", "results --forget-all --yes", "present hello", "present --clear"),
        "present --chapter pinning --step compare",
    ],
)
def test_a_host_without_a_class_says_so_and_names_the_command_that_makes_one(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(words, capsys)
    assert NO_CLASS in said
    assert said.endswith(MAKES_ONE)


@pytest.mark.parametrize("line", ["present --chapter pinning two words", "present two words --chapter pinning"])
def test_words_may_stand_before_and_behind_options(line: str) -> None:
    from jitter_workshop.commands import class_

    parser = verb_parser("class", class_.__doc__)
    class_.add_arguments(parser)
    asked = parser.parse_args(line.split())
    assert (asked.do, asked.words, asked.chapter, asked.command) == ("present", ["two", "words"], "pinning", [])


def test_a_command_is_kept_as_it_is() -> None:
    from jitter_workshop.commands import class_

    parser = verb_parser("class", class_.__doc__)
    class_.add_arguments(parser)
    asked = parser.parse_args(
        ["turn", "--wait", "5", "take", "--with", "grace", "alan", "--", "make", "--csv", "--", "x"]
    )
    assert (asked.do, asked.words, asked.people) == ("turn", ["take"], ["grace", "alan"])
    assert asked.command == ["make", "--csv", "--", "x"]


def test_without_a_terminal_init_and_remove_ask_for_yes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from jitter_workshop.flow.classes import classadmin

    class Todo:
        what = "a step"

    class Asked:
        systemd = True

    monkeypatch.setattr(classadmin, "wish", lambda _: Asked())
    monkeypatch.setattr(classadmin, "to_do", lambda _: ((Todo(), "why"),))
    monkeypatch.setattr(classadmin, "to_remove", lambda: ("a file",))
    for verb in ("init", "remove"):
        said = refused(verb, capsys)
        assert said.startswith("there is no terminal to ask")
        assert "use --yes, or --show" in said


def test_an_empty_name_is_no_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["class", "collect", ""]) == 2
    assert "give one folder" in capsys.readouterr().err
