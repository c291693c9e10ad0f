"""Test verdict files: what is written is verified, and what was altered is found out."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.flow.watching import verdicts
from jitter_workshop.flow.watching.tally import Tally, WatchSubject, report_of_watch
from jitter_workshop.flow.watching.verdicts import BAD, GOOD, NONE, check_verdict, verdict_of
from jitter_workshop.model.evidence import Part
from jitter_workshop.model.watch import BETWEEN, KeptStall
from jitter_workshop.stats.acceptance import parse_condition
from tests import reportschema

HOUR = 3_600_000_000_000
EVIL = 'x</failure>\x1b[2J\n"&<'
needs_keygen = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="no ssh-keygen")


def written(folder: Path, stalls: tuple[int, ...] = (), watched_ns: int = 12 * HOUR, key: Path | None = None) -> Path:
    condition = parse_condition("stall<20us for 12h")
    tally = Tally(condition.limit_ns, keep=3, watched_ns=watched_ns)
    tally.count_lengths(stalls)
    tally.not_watched[BETWEEN] = 5
    at = "2026-01-01T00:00:00.000Z"
    tally.add_kept(KeptStall(5, at, ns, 1, "sampler", (Part("task", EVIL, ns),)) for ns in stalls)
    report = report_of_watch(WatchSubject("id", "spin", cpu=1, started_s=1e9, duration_ns=watched_ns), tally)
    facts: dict[str, Any] = {"applied": (), "checks": ()}
    verdict = verdict_of(report, condition, tally, {"name": EVIL, "kernel": "6.12"}, facts)
    return verdicts.write_verdict(folder, verdict, key)


def key(folder: Path, name: str = "key") -> Path:
    path = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(path)], check=True)
    return path


@pytest.mark.parametrize(
    ("stalls", "watched_ns", "verdict", "tag"),
    [((), 12 * HOUR, "accepted", None), ((30_000,), 12 * HOUR, "rejected", "failure"), ((), HOUR, None, "error")],
)
def test_a_verdict_is_written_and_verified(
    tmp_path: Path, stalls: tuple[int, ...], watched_ns: int, verdict: str | None, tag: str | None
) -> None:
    path = written(tmp_path, stalls, watched_ns)
    whole = json.loads(reportschema.VERDICT.read_text(encoding="utf-8"))
    assert reportschema.problems(json.loads(path.read_text()), whole, whole) == []
    found = check_verdict(path)
    assert (found.verdict, found.problems, found.signature) == (verdict, (), NONE)
    assert found.accepted == (verdict == "accepted")
    suite = ElementTree.parse(tmp_path / verdicts.JUNIT).getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("1", str(int(tag == "failure")))
    case = suite.find("testcase")
    assert case is not None
    assert [inner.tag for inner in case] == ([tag] if tag else [])
    assert "\x1b" not in (tmp_path / verdicts.JUNIT).read_text()


def altered(**changes: Any) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        plain = json.loads(path.read_text())
        path.write_text(json.dumps(plain | changes))

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (altered(stalls=0), "the file's own figures give the verdict accepted"),
        (altered(verdict="accepted"), "the file's own figures give the verdict rejected"),
        (altered(limit_ns=40_000), "numbers differ from those in its condition"),
        (altered(accept="stall < 1s for 1h"), "numbers differ from those in its condition"),
        (altered(per_hour_high=0.1), "do not follow from the file's figures"),
        (altered(reason="fine"), "own figures"),
        (lambda path: (path.parent / verdicts.JUNIT).write_text("<x/>"), "does not have the same verdict"),
    ],
)
def test_a_file_that_contradicts_itself_is_found_out(
    tmp_path: Path, change: Callable[[Path], None], words: str
) -> None:
    path = written(tmp_path, (30_000,))
    change(path)
    found = check_verdict(path)
    assert any(words in problem for problem in found.problems)
    assert not found.accepted


@needs_keygen
def test_a_signed_file_is_verified_and_each_changed_byte_is_found_out(tmp_path: Path) -> None:
    mine, other = key(tmp_path), key(tmp_path, "other")
    path = written(tmp_path, key=mine)
    assert check_verdict(path).signature == GOOD
    signers = tmp_path / "signers"
    signers.write_text(f"release@lab {mine.with_suffix('.pub').read_text()}")
    found = check_verdict(path, signers)
    assert (found.signature, found.signed_by, found.accepted) == (GOOD, "release@lab", True)
    signers.write_text(f"release@lab {other.with_suffix('.pub').read_text()}")
    assert check_verdict(path, signers).signature == BAD
    signers.write_text(f"release@lab {mine.with_suffix('.pub').read_text()}")
    path.write_bytes(path.read_bytes().replace(b'"made_by": "j', b'"made_by": "k'))
    for found in (check_verdict(path), check_verdict(path, signers)):
        assert (found.signature, found.accepted) == (BAD, False)
    path.with_name(path.name + verdicts.SIGNATURE).unlink()
    assert check_verdict(path, signers).problems


@needs_keygen
def test_a_key_that_cannot_sign_is_refused_before_the_hours(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="cannot sign"):
        verdicts.check_key(tmp_path / "none")
    locked = tmp_path / "locked"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", str(locked)], check=True)
    with pytest.raises(HostError, match="cannot sign"):
        verdicts.check_key(locked)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff\x00", b'{"format_version": 1}'])
def test_a_file_that_is_no_verdict_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="is not a verdict file"):
        check_verdict(path)
    with pytest.raises(UsageError, match="cannot be read"):
        check_verdict(tmp_path / "none.json")
