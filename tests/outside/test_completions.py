"""Check completions and the man page with the programs that read them: bash, zsh, fish, man and mandoc."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from jitter_workshop import cli

CASES = [
    ("sta", "status"),
    ("--pl", "--plain"),
    ("status --exp", "--explain"),
    ("status --explain gover", "governor"),
    ("plan numa-b", "numa-balancing"),
    ("measure --workload wak", "wakeup"),
    ("practice scenario crow", "crowd"),
    ("class turn fre", "freeze"),
    ("--session x lessons chec", "check"),
    ("completions fi", "fish"),
]
"""Pairs of a typed text and the word that its last part becomes. The part is long enough for one answer."""


def made(verb: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.main(verb) == 0
    return capsys.readouterr().out


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} here")
    return found


def ran(words: list[str], said: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, input=said, env=os.environ | more, capture_output=True, text=True, timeout=60, check=False
    )


BASH = r"""
set -u
source "$1"
complete -p jitter-workshop
COMP_WORDS=(jitter-workshop $2)
[[ $2 != *" " ]] || COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
compopt() { :; }
_jitter_workshop jitter-workshop
printf '%s\n' "${COMPREPLY[@]}"
"""


def in_bash(script: Path, typed: str) -> list[str]:
    done = ran([program("bash"), "--norc", "-c", BASH, "bash", str(script), typed])
    assert done.stderr == ""
    first, *answers = done.stdout.splitlines()
    assert first == "complete -F _jitter_workshop jitter-workshop"
    return [answer for answer in answers if answer]


def test_bash_completes_verbs_options_values_and_ids(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "completions"
    script.write_text(made(["completions", "bash"], capsys))
    for typed, word in CASES:
        assert in_bash(script, typed) == [word], typed
    assert "measure" in in_bash(script, " ")
    assert in_bash(script, "measure --label x") == []
    assert in_bash(script, "status --explain = gover") == ["governor"]
    assert in_bash(script, "nothing --x") == []
    (tmp_path / "a.prof").write_text("")
    assert in_bash(script, f"apply --profile {tmp_path}/a.") == [f"{tmp_path}/a.prof"]
    assert in_bash(script, f"status --root {tmp_path.parent}/{tmp_path.name[:-1]}") != []


ZSH = r"""
autoload -Uz compinit
compinit -u -d "$ZDOTDIR/dump"
source "$ZDOTDIR/completions"
PS1=READY
zstyle ':completion:*' menu no
unsetopt beep list_beep
"""


def test_zsh_completes_verbs_options_values_and_ids(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Zsh completes only in a terminal, so one is made and the keys are typed."""
    zsh = program("zsh")
    (tmp_path / "completions").write_text(made(["completions", "zsh"], capsys))
    (tmp_path / ".zshrc").write_text(ZSH)
    shell = Typed([zsh, "-i"], {"ZDOTDIR": str(tmp_path), "TERM": "dumb", "HISTFILE": ""})
    try:
        shell.until("READY")
        for typed, word in CASES:
            # The line is completed, and printed by echo; # ends the word whatever follows it.
            shell.type(f"jitter-workshop {typed}\t\x01: \x05'<END'\n")
            whole = " ".join(["jitter-workshop", *typed.split()[:-1], word])
            assert whole in shell.until("READY"), typed
    finally:
        shell.end()


def test_fish_completes_verbs_options_values_and_ids(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fish = program("fish")
    script = tmp_path / "completions.fish"
    script.write_text(made(["completions", "fish"], capsys))
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    for typed, word in CASES:
        asked = f"source {script}; complete -C 'jitter-workshop {typed}'"
        done = ran([fish, "--no-config", "-c", asked], **home)
        assert done.stderr == ""
        assert word in [line.partition("\t")[0] for line in done.stdout.splitlines()], typed


def test_the_man_page_is_read_without_a_complaint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "jitter-workshop.1"
    page.write_text(made(["man"], capsys))
    if shutil.which("mandoc") is None and shutil.which("man") is None:
        pytest.skip("neither man nor mandoc here")
    if shutil.which("mandoc"):
        done = ran(["mandoc", "-T", "lint", "-W", "error", str(page)])
        assert (done.stdout, done.returncode) == ("", 0)
    if shutil.which("man"):
        shown = ran(["man", "--warnings", "-l", str(page)], MANWIDTH="80", MAN_KEEP_FORMATTING="", LC_ALL="C.UTF-8")
        assert (shown.returncode, shown.stderr) == (0, "")
        plain = re.sub(r".\x08", "", shown.stdout)
        assert "--for-percentile" in plain
        assert "EXIT STATUS" in plain


class Typed:
    """A program in a terminal of its own, to which keys are typed."""

    def __init__(self, words: list[str], more: dict[str, str]) -> None:
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.execvpe(words[0], words, os.environ | more)

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def until(self, word: str, limit_s: float = 20.0) -> str:
        """Return what is printed up to this word."""
        seen, ends = "", time.monotonic() + limit_s
        while word not in seen:
            assert time.monotonic() < ends, seen
            if select.select([self._terminal], [], [], 0.2)[0]:
                seen += os.read(self._terminal, 65536).decode("utf-8", "replace")
        return seen

    def end(self) -> None:
        os.close(self._terminal)
        os.waitpid(self._pid, 0)
