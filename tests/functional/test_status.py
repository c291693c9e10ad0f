"""status and plan from the command line: the contract of their JSON, exit codes, sentences, and what they load."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.cli import main
from jitter_workshop.course import kept, loader
from jitter_workshop.tuning import journal
from tests import hosttrees
from tests.unit.test_house import HEAVY, REPOSITORY
from tests.unit.test_presenter_status import parse_metrics

Tree = Callable[[str], Path]
Capture = pytest.CaptureFixture[str]
FIELDS = {"id", "title", "state", "value", "wanted", "reason", "when", "paths", "fix"}


def asked(capsys: Capture, *words: object) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def told(capsys: Capture, *words: object) -> tuple[int, dict[str, Any]]:
    code, out, _ = asked(capsys, *words, "--json")
    value: dict[str, Any] = json.loads(out)
    assert value["format_version"] == 1
    return code, value


@pytest.mark.parametrize("name", sorted(hosttrees.EVERY))
def test_status_keeps_its_contract_on_every_host(name: str, host_tree: Tree, capsys: Capture) -> None:
    code, value = told(capsys, "status", "--root", host_tree(name))
    assert {"host", "hot_cpus", "housekeeping_cpus", "checks", "summary"} <= value.keys()
    assert all(check.keys() >= FIELDS for check in value["checks"])
    assert all(isinstance(cpu, int) for cpu in value["hot_cpus"] + value["housekeeping_cpus"])
    assert not set(value["hot_cpus"]) & set(value["housekeeping_cpus"])
    assert set(value["hot_sibling_cpus"]) <= set(value["hot_cpus"])
    every = value["hot_cpus"] + value["sibling_cpus"] + value["housekeeping_cpus"]
    assert sorted(every) == value["host"]["cpus_online"], "each CPU is one of three"
    assert {check["when"] for check in value["checks"]} <= {"runtime", "boot", "host", "report"}
    states = [check["state"] for check in value["checks"]]
    assert value["summary"] == {s: states.count(s) for s in ("ok", "improve", "unavailable", "info")}
    assert code == (1 if value["summary"]["improve"] else 0)
    assert value["host"]["recorded"] is True


@pytest.mark.parametrize("verb", ["status", "plan"])
def test_the_sibling_of_a_cpu_that_was_asked_for_is_named(verb: str, host_tree: Tree, capsys: Capture) -> None:
    _, out, _ = asked(capsys, verb, "governor", "--cpus", "2", "--root", host_tree("hybrid_laptop"))
    said = " ".join(out.split())
    assert "CPU 3 shares a core" in said
    assert "keeps other work off it" in said


def test_siblings_of_cpus_that_were_asked_for_are_isolated_with_them(tmp_path: Path, capsys: Capture) -> None:
    files = hosttrees.cgroup2(files={"cgroup.controllers": "cpuset\n", "cgroup.subtree_control": "\n"})
    files |= {"sys/devices/virtual/workqueue/cpumask": "ffff\n"}
    root = hosttrees.write(hosttrees.hybrid_laptop(tmp_path), files)
    words = ("isolation", "workqueue-mask", "isolcpus", "--cpus", "3,4", "--root", root)
    _, out, _ = asked(capsys, "plan", *words)
    assert "CPU 2,5 share cores with hot CPUs" in " ".join(out.split())
    assert "isolcpus=managed_irq,domain,2-5" in out
    _, value = told(capsys, "plan", *words)
    written = {change["path"].rpartition("/")[2]: change["after"] for change in value["changes"]}
    assert (value["hot_cpus"], written["cpuset.cpus"], written["cpumask"]) == ([3, 4], "2-5", "ffc3")
    _, value = told(capsys, "status", "isolation", "--cpus", "3,4", "--root", root)
    assert (value["hot_cpus"], value["sibling_cpus"]) == ([3, 4], [2, 5])
    assert value["checks"][0]["wanted"] == "CPUs 2-5"


def test_each_check_names_its_chapter_or_why_there_is_none(host_tree: Tree, capsys: Capture) -> None:
    _, value = told(capsys, "status", "--root", host_tree("guest"))
    checks = {check["id"]: (check["chapter"], check["why_no_chapter"]) for check in value["checks"]}
    assert checks["governor"] == ("governor", None)
    assert checks["smt"] == ("isolation", None)
    chapter, reason = checks["aslr"]
    assert (chapter, "A proof starts new processes" in reason) == (None, True)
    assert all((chapter is None) != (reason is None) for chapter, reason in checks.values())
    main(["status", "--explain", "aslr", "--root", str(host_tree("guest"))])
    assert "No chapter teaches this: Neither" in " ".join(capsys.readouterr().out.split())
    said = " ".join(asked(capsys, "status", "aslr", "governor", "--root", host_tree("guest"))[1].split())
    assert "No chapter teaches aslr: Neither" in said
    assert "No chapter teaches governor" not in said
    assert "No chapter teaches" not in asked(capsys, "status", "--root", host_tree("guest"))[1], "the list stays short"


def test_the_course_is_read_once_and_kept_for_the_next_status(host_tree: Tree, capsys: Capture) -> None:
    loader._builtin.cache_clear()
    loader._keep.cache_clear()
    assert kept.read_kept_course(loader.builtin_course()) is None
    told(capsys, "status", "--root", host_tree("guest"))
    assert kept.read_kept_course(loader.builtin_course()) == loader.load_course()


def test_status_without_anything_to_improve_is_0(host_tree: Tree, capsys: Capture) -> None:
    code, value = told(capsys, "status", "thp", "governor", "--root", host_tree("guest"))
    assert code == 0
    assert [check["id"] for check in value["checks"]] == ["governor", "thp"], "in the registry's order"


def test_status_in_a_pipe_has_no_escapes_and_gives_advice(host_tree: Tree, capsys: Capture) -> None:
    code, out, err = asked(capsys, "status", "--root", host_tree("server64"))
    assert (code, err) == (1, "")
    assert "\x1b" not in out
    assert "This is a recorded host" in out
    assert "do: jitter-workshop apply governor" in out
    code, out, _ = asked(capsys, "status", "--root", host_tree("guest"))
    assert "owner of the machine below can" in out


@pytest.mark.parametrize("columns", ["80", "160"])
def test_status_fits_its_width(columns: str, host_tree: Tree, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for words in (["status"], ["status", "--explain", "governor"], ["plan"]):
        _, out, _ = asked(capsys, *words, "--root", host_tree("server64"))
        wide = [line for line in out.split("\n") if len(line) > int(columns) and "  cat " not in line]
        assert not wide


def test_the_hot_cpus_are_asked_for_or_explained(host_tree: Tree, capsys: Capture) -> None:
    _, value = told(capsys, "status", "--cpus", "1-2", "--root", host_tree("small3"), "thp")
    assert (value["hot_cpus"], value["housekeeping_cpus"]) == ([1, 2], [0])
    _, value = told(capsys, "status", "--root", host_tree("small1"), "thp")
    assert (value["hot_cpus"], value["housekeeping_cpus"]) == ([0], [])
    assert "housekeeping" in value["notes"]["hot_cpus"]


def test_explain_tells_all_of_one_check(host_tree: Tree, capsys: Capture) -> None:
    code, out, _ = asked(capsys, "status", "--explain", "governor", "--root", host_tree("server64"))
    assert code == 1
    for said in ("why", "risk", "danger", "restore", "admin-guide/pm/cpufreq.rst", "policy30/scaling_governor", "cat "):
        assert said in out
    _, value = told(capsys, "status", "--explain", "governor", "--root", host_tree("server64"))
    assert value["explained"]["document"]
    assert [check["id"] for check in value["checks"]] == ["governor"]


def test_every_check_can_be_explained_on_every_kind_of_host(host_tree: Tree, capsys: Capture) -> None:
    _, value = told(capsys, "status", "--root", host_tree("guest"))
    for name in ("guest", "server64"):
        for check in value["checks"]:
            code, out, err = asked(capsys, "status", "--explain", check["id"], "--root", host_tree(name))
            assert (code in (0, 1), err) == (True, "")
            assert check["id"] in out.split("\n")[0]


def test_metrics_for_the_textfile_collector(host_tree: Tree, capsys: Capture) -> None:
    code, out, err = asked(capsys, "status", "--prometheus", "--root", host_tree("server64"))
    assert (code, err) == (1, "")
    metrics = parse_metrics(out)
    assert metrics["jitter_workshop_check"]['id="governor",when="runtime",state="improve"'] == 1
    assert set(metrics["jitter_workshop_hot_cpu"]) == {f'cpu="{n}"' for n in (30, 31, 62, 63)}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["status", "govrnor"], "did you mean 'governor'"),
        (["status", "--explain", "\x1b[31mx"], "there is no"),
        (["status", "--explain", "governor", "epp"], "one check"),
        (["status", "--cpus", "x"], "--cpus takes a list"),
        (["status", "--cpus", "77"], "no CPU 77"),
        (["status", "--json", "--prometheus"], "--prometheus"),
        (["plan", "govrnor"], "did you mean 'governor'"),
        (["plan", "governor=bla"], "cannot be 'bla'"),
        (["plan", "governor=performance", "governor=powersave"], "twice"),
        (["plan", "--sh", "--json"], "--sh"),
        (["plan", "--cpus", ""], "names no CPU"),
    ],
)
def test_wrong_words_are_refused_in_one_line(words: list[str], said: str, host_tree: Tree, capsys: Capture) -> None:
    code, out, err = asked(capsys, *words, "--root", host_tree("server64"))
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert err.rstrip("\n").isprintable()


def test_a_host_of_which_nothing_can_be_read_is_2(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "proc").mkdir()
    code, out, err = asked(capsys, "status", "--json", "--root", tmp_path)
    assert (code, out) == (2, "")
    assert "host shows nothing about its CPUs" in err


def test_a_setting_of_ours_that_others_changed_reads_drifted(tmp_path: Path, capsys: Capture) -> None:
    """From the journal on the host to the line: set by us, changed by tuned, unchanged under another boot."""
    root = hosttrees.small(tmp_path, 3)
    governors = {f"{hosttrees.CPU}/cpufreq/policy{n}/scaling_governor": n for n in range(3)}
    for n in range(3):
        policy = hosttrees.policy(n, cpus=str(n), driver="x", governor="powersave", low_khz=1_000, high_khz=2_000)
        hosttrees.write(root, policy)
    hosttrees.write(root, hosttrees.task(812, "tuned"))
    path = "/" + next(name for name, n in governors.items() if n == 2)
    ident = "000001-20260101T000000Z"
    same = {"boot_id": hosttrees.BOOT_ID}
    change = {"n": 1, "tunable": "governor", "path": path, "kind": "value", "before": "powersave"}
    records: list[dict[str, Any]] = [
        {"record": "header", "format": 1, "id": ident, "uid": 0, "time": "x", "hot_cpus": [2], "wanted": ["governor"]}
        | same,
        {"record": "intent", "after": "performance", "when": "runtime", "lease": False, "then": ""} | change | same,
        {"record": "written", "n": 1, "read_back": "performance"},
    ]
    file = root / journal.JOURNAL_DIR.lstrip("/") / f"{ident}{journal.SUFFIX}"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"".join(map(journal.encode_record, records)))
    _, value = told(capsys, "status", "governor", "--root", root)
    (check,) = value["checks"]
    assert check["drifted"] == {"path": path, "set": "performance", "found": "powersave", "culprit": "tuned"}
    assert check["reason"].startswith("drifted: this tool set performance")
    assert "of tuned" in check["reason"]
    _, out, _ = asked(capsys, "status", "governor", "--root", root)
    assert "Drifted" in out
    hosttrees.write(root, {"proc/sys/kernel/random/boot_id": "another\n"})
    _, value = told(capsys, "status", "governor", "--root", root)
    assert value["checks"][0]["drifted"] is None, "another boot has undone what we set"


def test_plan_keeps_its_contract(host_tree: Tree, capsys: Capture) -> None:
    code, value = told(capsys, "plan", "--root", host_tree("server64"))
    assert code == 0
    assert value["boot_id"] == hosttrees.BOOT_ID
    assert value["hot_cpus"] == [30, 31, 62, 63]
    assert [change["n"] for change in value["changes"]] == list(range(1, len(value["changes"]) + 1))
    fields = {"n", "tunable", "path", "before", "after", "when", "risk", "why", "lease"}
    assert all(change.keys() >= fields for change in value["changes"])
    assert {change["when"] for change in value["changes"]} == {"runtime"}
    assert "governor" in {change["tunable"] for change in value["changes"]}


def test_plan_lists_the_tunables_that_it_leaves_out(host_tree: Tree, capsys: Capture) -> None:
    code, value = told(capsys, "plan", "governor", "temperature", "--root", host_tree("guest"))
    assert (code, value["changes"]) == (0, [])
    assert [s["tunable"] for s in value["skipped"]] == ["governor", "temperature"]
    assert all(s["reason"] for s in value["skipped"])
    code, out, _ = asked(capsys, "plan", "governor", "--root", host_tree("guest"))
    assert out.startswith("Nothing would be written.")
    assert "LEFT OUT" in out


def test_plan_as_a_script_is_shell(host_tree: Tree, capsys: Capture, tmp_path: Path) -> None:
    code, out, _ = asked(capsys, "plan", "governor", "--sh", "--root", host_tree("server64"))
    assert code == 0
    assert out.startswith("#!/bin/sh\n")
    assert hosttrees.BOOT_ID in out
    script = tmp_path / "plan.sh"
    script.write_text(out)
    assert subprocess.run(["sh", "-n", str(script)], timeout=30, check=False).returncode == 0


@pytest.mark.parametrize(
    "words", [["status"], ["status", "--json"], ["status", "--prometheus"], ["plan"], ["status", "--explain", "thp"]]
)
def test_reading_verbs_load_nothing_heavy(words: list[str], tmp_path: Path, host_tree: Tree) -> None:
    code = (
        "import sys, json\nfrom jitter_workshop.cli import main\n"
        f"main({[*words, '--root', str(host_tree('guest'))]!r})\n"
        "sys.stderr.write(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"XDG_STATE_HOME": str(tmp_path)},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    loaded = set(json.loads(done.stderr))
    assert not HEAVY & loaded
    # These modules take milliseconds to load, and are needed for JSON at most.
    slow = {"subprocess", "asyncio", "inspect", "dataclasses", "multiprocessing"}
    assert not (slow - ({"dataclasses", "inspect"} if "--json" in words else set())) & loaded
