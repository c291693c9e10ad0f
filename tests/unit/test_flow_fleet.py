"""The answers of many hosts: what is read, what is left out with a reason, and which settings are the odd ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.flow.fleet import compare_fleet
from jitter_workshop.model.codec import to_plain
from jitter_workshop.model.fleet import FleetComparison
from jitter_workshop.model.host import EMULATED, NO_VERDICT, mark_notes
from tests import reportschema
from tests.madefleet import host_facts, run_of, status_of, write_answer, write_fleet

NAMES = [f"n{number}" for number in range(6)]


def left_out(found: FleetComparison) -> dict[str, str]:
    """Return the name of each file that is left out, with the reason."""
    return {Path(one.file).name: one.reason for one in found.left_out}


def test_the_slow_host_is_found_and_named(tmp_path: Path) -> None:
    names = [f"n{number:02}" for number in range(12)]
    found = compare_fleet([write_fleet(tmp_path, names, slow={"n07": 3.0})], ["p99"])
    assert {(row.host, row.direction) for row in found.rows if row.different} == {("n07", "higher")}
    assert found.rows[0].ratio == pytest.approx(3, rel=0.2)
    assert [host.host for host in found.hosts if host.different] == ["n07"]
    assert (found.alike, found.mark, found.left_out) == (False, "", ())
    assert found.way == "ring, spin, every 10 µs, duty 100 %, clock tsc"


def test_alike_hosts_are_alike(tmp_path: Path) -> None:
    found = compare_fleet([write_fleet(tmp_path, NAMES, runs=3)])
    assert found.alike
    assert (found.settings, found.settings_alike) == ((), 12)


def test_odd_settings_are_told_beside_the_commonest_value(tmp_path: Path) -> None:
    write_fleet(tmp_path, NAMES, runs=0)
    write_answer(tmp_path / "n3", "status.json", status_of("n3", {"governor": "powersave", "temperature": "90 °C"}))
    write_answer(tmp_path / "n4", "status.json", status_of("n4", {"governor": None}, kernel="6.2"))
    found = compare_fleet([tmp_path])
    plain = [
        (one.setting, one.commonest, one.hosts, [(o.value, o.hosts) for o in one.others]) for one in found.settings
    ]
    assert plain == [
        ("host.kernel", "6.1.0", 5, [("6.2", ("n4",))]),
        ("governor", "usual", 4, [("not here", ("n4",)), ("powersave", ("n3",))]),
    ]
    assert [host.host for host in found.hosts if host.different] == ["n3", "n4"]
    assert found.notes == {"rows": "no file has a run or a watch"}


def test_without_a_commonest_value_no_host_is_the_odd_one(tmp_path: Path) -> None:
    write_fleet(tmp_path, ("a", "b"), runs=0)
    write_answer(tmp_path / "b", "status.json", status_of("b", {"thp": "never"}))
    found = compare_fleet([tmp_path])
    assert [(one.setting, one.commonest) for one in found.settings] == [("thp", None)]
    assert not any(host.different for host in found.hosts)
    assert not found.alike


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty: the host gave no answer"),
        ("{", "no whole JSON object"),
        ("[1]", "no whole JSON object"),
        ("[" * 100_000, "nested too deeply"),
        ("{}", "it is no answer of jitter-workshop in JSON"),
        ('{"format_version": 2}', "it has the format 2 of another version"),
        ('{"format_version": 1, "can_measure": true}', "it is not from 'status --json'"),
        ('{"format_version": 1, "checks": 3, "host": {}, "summary": {}}', "its field checks is no list of objects"),
        ('{"format_version": 1, "histograms": {}, "workload": 3, "stalls": {}, "host": {}}', "workload is no text"),
    ],
)
def test_a_bad_file_is_left_out_with_its_reason(tmp_path: Path, text: str, reason: str) -> None:
    write_fleet(tmp_path, NAMES, runs=2)
    write_answer(tmp_path / "n2", "bad.json", text)
    found = compare_fleet([tmp_path])
    assert reason in left_out(found)["bad.json"]
    assert len(found.hosts) == len(NAMES)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, True, "5", None, 10**400])
def test_a_number_that_is_none_is_not_compared(tmp_path: Path, value: Any) -> None:
    write_fleet(tmp_path, NAMES, runs=2)
    bad = run_of("n1", 9)
    bad["stalls"]["stolen_ns_per_second"] = value
    write_answer(tmp_path / "n1", "bad.json", bad)
    assert "stolen_ns_per_second is no number" in left_out(compare_fleet([tmp_path]))["bad.json"]


def test_the_same_run_twice_and_a_second_status_are_left_out(tmp_path: Path) -> None:
    write_fleet(tmp_path, NAMES, runs=2)
    write_answer(tmp_path / "n1", "x-copy.json", run_of("n1", 0))
    write_answer(tmp_path / "n1", "y-status.json", status_of("n1", {"thp": "never"}))
    found = compare_fleet([tmp_path])
    assert left_out(found)["x-copy.json"].endswith("run0.json")
    assert left_out(found)["y-status.json"].startswith("the settings of n1 are in")
    assert found.settings == ()


def test_another_machine_of_the_same_name_is_left_out(tmp_path: Path) -> None:
    paths = [write_answer(tmp_path, f"{name}.json", status_of(name)) for name in NAMES]
    paths.append(write_answer(tmp_path, "z.json", status_of("n1", cpu_model="Other CPU")))
    assert left_out(compare_fleet(paths)) == {"z.json": "another machine has the name n1, too"}


def test_a_folder_names_its_host_and_a_file_elsewhere_names_itself(tmp_path: Path) -> None:
    write_answer(tmp_path / "rack" / "deep", "a.json", status_of("localhost"))
    write_answer(tmp_path / "other", "a.json", status_of("localhost"))
    write_answer(tmp_path, "loose.json", status_of("third"))
    write_answer(tmp_path, "board.json", "{")
    write_answer(tmp_path, "notes.txt", "{")
    (tmp_path / "silent").mkdir()
    found = compare_fleet([tmp_path])
    assert [host.host for host in found.hosts] == ["other", "rack", "third"]
    assert left_out(found) == {"silent": "the folder has no answer of this host"}


def test_names_of_hosts_are_cleaned(tmp_path: Path) -> None:
    for name in ("a\x1b[31m", "b\u202e", "c" * 300):
        write_answer(tmp_path, f"{ord(name[0])}.json", status_of(name, {"thp": f"{name}\n"}))
    found = compare_fleet([tmp_path])
    shown = [host.host for host in found.hosts] + [one.value for row in found.settings for one in row.others]
    assert all(text.isprintable() and len(text) <= 120 for text in shown)


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        ({"recorded": True}, "a recorded host"),
        ({"emulated": True}, "an emulated machine"),
        ({"accelerator": "kvm"}, "a practice machine"),
    ],
)
def test_marked_hosts_are_never_mixed_with_real_ones(tmp_path: Path, facts: dict[str, Any], kind: str) -> None:
    for name in ("a", "b"):
        write_answer(tmp_path, f"{name}.json", status_of(name))
    for name in ("x", "y", "z"):
        write_answer(tmp_path, f"{name}.json", status_of(name, **facts))
    found = compare_fleet([tmp_path])
    assert [host.host for host in found.hosts] == ["a", "b"]
    assert set(left_out(found).values()) == {f"it is of {kind}, the others are of a real host"}
    alone = compare_fleet([tmp_path / f"{name}.json" for name in "xyz"])
    assert (len(alone.hosts), alone.mark != "") == (3, True)


def test_times_of_emulated_machines_are_not_judged(tmp_path: Path) -> None:
    for name in NAMES:
        for run in range(3):
            emulated = {**run_of(name, run), "host": host_facts(name, emulated=True)}
            write_answer(tmp_path / name, f"{run}.json", emulated)
    found = compare_fleet([tmp_path])
    assert (found.mark, found.rows, found.notes["rows"]) == (EMULATED, (), NO_VERDICT)


def test_only_runs_of_one_kind_are_compared(tmp_path: Path) -> None:
    write_fleet(tmp_path, NAMES, runs=3)
    write_answer(tmp_path / "n1", "slow-pace.json", run_of("n1", 7, interval_ns=50_000))
    write_answer(tmp_path / "n2", "noisy.json", run_of("n2", 7, noise="timer"))
    found = compare_fleet([tmp_path])
    assert left_out(found) == {
        "noisy.json": "it was measured in another way: ring, spin, every 10 µs, duty 100 %, clock tsc, noise timer",
        "slow-pace.json": "it was measured in another way: ring, spin, every 50 µs, duty 100 %, clock tsc",
    }
    assert {row.runs for row in found.rows} == {3}


def watched(stalls: int, number: int, **changed: Any) -> dict[str, Any]:
    """The JSON of ``watch``, without the fields that are not compared."""
    return {
        "format_version": 1,
        "watching": "spin",
        "started_at": f"2026-01-01T0{number}:00:00Z",
        "watched_s": 3_600.0,
        "threshold_ns": 20_000,
        "rates": [{"threshold_ns": 20_000, "count": stalls}],
        "notes": {},
        **changed,
    }


def test_watches_are_rates_and_stand_beside_runs(tmp_path: Path) -> None:
    names = [f"n{number:02}" for number in range(10)]
    write_fleet(tmp_path, names, runs=2)
    for host, name in enumerate(names):
        for number in range(5):
            stalls = 400 + number if name == "n04" else 10 + (host + number) % 4
            write_answer(tmp_path / name, f"w{number}.json", watched(stalls, number))
    write_answer(tmp_path / "n01", "nothing.json", watched(0, 8, watched_s=0.0))
    write_answer(tmp_path / "n02", "marked.json", watched(9, 9, notes=mark_notes(EMULATED)))
    write_answer(tmp_path, "nameless.json", watched(3, 9))
    found = compare_fleet([tmp_path])
    assert {(row.figure, row.host) for row in found.rows if row.different} == {
        ("watch_stalls_per_hour_over_20000_ns", "n04")
    }
    assert found.way.endswith("; watch of spin, stalls from 20000 ns")
    assert left_out(found) == {
        "nothing.json": "nothing was watched",
        "marked.json": "it is of an emulated machine, the others are of a real host",
        "nameless.json": "it names no host; put it into a folder with the name of its host",
    }


def test_a_verdict_file_has_settings_and_a_rate(tmp_path: Path) -> None:
    for name in NAMES:
        verdict = {
            **watched(5, 1),
            "accept": "stall < 50us for 1h",
            "limit_ns": 50_000,
            "watched_ns": 3_600 * 10**9,
            "stalls": 7,
            "host": host_facts(name),
            "checks": status_of(name)["checks"],
        }
        write_answer(tmp_path, f"{name}.json", verdict)
    found = compare_fleet([tmp_path])
    assert {(row.figure, row.value) for row in found.rows} == {("watch_stalls_per_hour_over_50000_ns", 7.0)}
    assert found.settings_alike == 12


def test_one_host_alone_is_an_error_with_the_reason(tmp_path: Path) -> None:
    write_answer(tmp_path / "a", "status.json", status_of("a"))
    write_answer(tmp_path / "b", "status.json", "")
    with pytest.raises(
        HostError, match=r"not two hosts to compare \(1 host; 2 files left out; .*b/status.json: it is empty"
    ):
        compare_fleet([tmp_path])


def test_an_unknown_path_and_an_unknown_figure_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no .*nowhere"):
        compare_fleet([tmp_path / "nowhere"])
    with pytest.raises(UsageError, match="no run has the figure p98"):
        compare_fleet([write_fleet(tmp_path, NAMES, runs=1)], ["p98"])


def test_the_schema_of_the_comparison_is_that_of_the_types(tmp_path: Path) -> None:
    assert reportschema.FLEET.read_text(encoding="utf-8") == reportschema.fleet_text(), (
        "run 'python -m tests.reportschema'"
    )
    write_answer(write_fleet(tmp_path, NAMES, runs=2) / "n1", "bad.json", "{")
    plain = json.loads(json.dumps(to_plain(compare_fleet([tmp_path]))))
    whole = reportschema.schema(FleetComparison)
    assert reportschema.problems(plain, whole, whole) == []
