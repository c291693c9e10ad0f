"""status as text and as metrics: fits its width, says what to do, and lets no name of a host steer a terminal."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.flow.host_ops.host_status import StatusHead
from jitter_workshop.model.status import Assessment, SettingDrift
from jitter_workshop.model.text import clean
from jitter_workshop.model.walk import Fact
from jitter_workshop.presenter.host.status import check_table, fact_lines
from jitter_workshop.presenter.text.lines import Output, wrap, written
from jitter_workshop.report.check_words import value_in_words
from jitter_workshop.report.formats import prometheus

PAGE = StatusHead(False, True, "1", "0", "asked with --cpus")
ESCAPE = re.compile(r"\x1b\[[\d;]+m")


def render(page: StatusHead, groups: Any, width: int, colour: bool = False, *, brief: bool = True) -> str:
    return written(check_table("lab03 · Linux 6.12", page, groups, width, brief=brief), colour)


@pytest.mark.parametrize(
    ("ident", "values", "told"),
    [
        ("stat-interval", ("1", "10"), "1 s → 10 s"),
        ("compaction", ("20", "0"), "20 of 100 → 0 of 100"),
        ("watchdogs", ("0-1", "0"), "CPUs 0-1 → CPU 0"),
        ("governor", ("powersave", "performance"), "powersave → performance"),
    ],
)
def test_a_bare_number_of_a_check_has_its_unit(ident: str, values: tuple[str, str], told: str) -> None:
    assert value_in_words(check(ident, value=values[0], wanted=values[1])) == told


def check(id: str = "governor", state: Any = "improve", **more: Any) -> Assessment:
    fields: dict[str, Any] = {
        "id": id,
        "title": "CPU governor",
        "state": state,
        "value": "powersave",
        "wanted": "performance",
        "reason": "the clock follows the load",
        "when": "runtime",
        "paths": (),
        "fix": f"jitter-workshop apply {id}" if state == "improve" else "",
    }
    return Assessment(**(fields | more))


@pytest.mark.parametrize(
    ("hot", "siblings", "housekeeping", "said"),
    [
        ("1", "", "0", "Hot CPU 1, housekeeping 0: asked"),
        ("1", "3", "0,2", "Hot CPU 1, its sibling 3, housekeeping 0,2: asked"),
        ("2-3", "6-7", "0-1", "Hot CPUs 2-3, their siblings 6-7, housekeeping 0-1: asked"),
        ("0-3", "", "", "Hot CPUs 0-3, no housekeeping CPU: asked"),
    ],
)
def test_the_three_sorts_of_cpus_stand_above_the_checks(hot: str, siblings: str, housekeeping: str, said: str) -> None:
    page = StatusHead(False, False, hot, housekeeping, "asked", siblings=siblings)
    assert said in render(page, [], 100)


def test_hot_cpus_that_stay_idle_are_named() -> None:
    page = StatusHead(False, False, "2-5", "0-1", "asked", hot_siblings="3,5")
    assert "Hot CPUs 2-5 (siblings 3,5 stay idle), housekeeping 0-1: asked" in render(page, [], 100)


texts = st.text(max_size=60)
checks = st.builds(
    check,
    id=st.text(alphabet="abcdef-", min_size=1, max_size=25),
    state=st.sampled_from(["ok", "improve", "unavailable", "info"]),
    title=texts,
    value=st.none() | texts,
    wanted=st.none() | texts,
    reason=texts | st.just("x" * 300),
    fix=st.just("") | texts,
    only_host=st.booleans(),
)


@given(st.lists(checks, max_size=5), st.integers(60, 160), st.booleans(), st.booleans())
def test_no_line_is_wider_than_the_terminal(found: list[Assessment], width: int, colour: bool, brief: bool) -> None:
    text = render(PAGE, [("CPU frequency", found)], width, colour, brief=brief)
    plain = ESCAPE.sub("", text)
    assert max(len(line) for line in plain.split("\n")) <= width
    assert text.endswith("\n")
    assert all(c == "\n" or c.isprintable() for c in plain)
    assert colour or plain == text


@given(st.text(), st.integers(8, 80))
def test_wrapping_loses_nothing(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert "".join("".join(line.plain for line in lines).split()) == "".join(clean(text, len(text)).split())
    assert all(line.cell_len <= width for line in lines)


def test_a_check_that_can_be_better_tells_state_reason_and_cure() -> None:
    text = render(PAGE, [("CPU frequency", [check()])], 80)
    for said in ("CPU FREQUENCY", "▲ can be better", "powersave → performance", "follows the load", "apply governor"):
        assert said in text
    assert "0 ok · 1 can be better" in text
    assert "restore" in text


def test_a_guest_is_told_the_checks_that_only_its_host_can_answer() -> None:
    found = [check(state="unavailable", value=None, only_host=True), check("thp", "ok")]
    text = render(PAGE, [("A", found)], 80)
    assert "Only the owner of the machine below can" in text
    assert "tell or change these: governor." in text
    bare = StatusHead(False, False, "1", "0", "")
    assert "hypervisor's owner" not in render(bare, [("A", found)], 80)


def test_recorded_hosts_and_odd_choices_are_marked() -> None:
    page = StatusHead(True, False, "0-1", "", "asked", note="all CPUs are hot")
    text = render(page, [("A", [check()])], 80)
    assert "a recorded host" in text
    assert "no housekeeping CPU" in text
    assert "▲ all CPUs are hot" in text


def test_drift_stands_in_the_sum() -> None:
    drifted = check(reason="drifted: set to a, found b", drifted=SettingDrift("/p", "a", "b", None))
    assert "Drifted" in render(PAGE, [("A", [drifted])], 80)


def test_the_same_reason_is_not_said_twice_in_a_row() -> None:
    found = [check(i, "unavailable", value=None, reason="this kernel has no cpufreq") for i in ("a", "b")]
    assert render(PAGE, [("A", found)], 80).count("this kernel has no cpufreq") == 1
    assert render(PAGE, [("A", found)], 80, brief=False).count("this kernel has no cpufreq") == 2


def test_a_brief_status_cuts_only_reasons_without_an_improvement() -> None:
    long = " ".join(f"word{n}" for n in range(60))
    for state, whole in (("info", False), ("unavailable", False), ("improve", True)):
        assert ("word59" in render(PAGE, [("A", [check(state=state, reason=long)])], 80)) is whole
    assert "word59" in render(PAGE, [("A", [check(state="info", reason=long)])], 80, brief=False)


@pytest.mark.parametrize(
    ("environment", "terminal", "expected"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
        ({}, True, False),
        ({"TERM": "xterm"}, False, False),
    ],
)
def test_colour_only_where_a_person_looks(
    environment: dict[str, str], terminal: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Out(io.StringIO):
        def isatty(self) -> bool:
            return terminal

        def fileno(self) -> int:
            return -1

    for name in ("TERM", "NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout", Out())
    style = Output()
    assert style.colour is expected
    assert style.width == (80 if terminal else 100)


@pytest.mark.parametrize(("columns", "width"), [("72", 72), ("7", 60), ("9999", 160), ("x", 100), ("", 100)])
def test_the_width_that_is_given_is_kept_within_reason(
    columns: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr("sys.stdout", io.StringIO())
    assert Output().width == width


# -- metrics --------------------------------------------------------------------------------------------------------

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_SAMPLE = re.compile(rf'({_NAME})\{{((?:{_NAME}="(?:[^"\\\n]|\\["\\n])*",?)*)\}} (-?\d+)')


def parse_metrics(text: str) -> dict[str, dict[str, int]]:
    """A strict reading of the exposition format: HELP, TYPE, then that metric's samples, none twice."""
    assert text.endswith("\n")
    found: dict[str, dict[str, int]] = {}
    helped = typed = None
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            helped = line.split(" ", 3)[2]
            assert helped not in found
        elif line.startswith("# TYPE "):
            typed, kind = line.split(" ")[2:]
            assert (typed, kind) == (helped, "gauge")
            found[typed] = {}
        else:
            match = _SAMPLE.fullmatch(line)
            assert match, line
            assert match[1] == typed
            assert match[2] not in found[match[1]], "a sample twice"
            found[match[1]][match[2]] = int(match[3])
    return found


@given(st.lists(checks, max_size=5, unique_by=lambda c: c.id), st.sets(st.integers(0, 511), max_size=4))
def test_metrics_can_be_read_by_a_strict_parser(found: list[Assessment], hot: set[int]) -> None:
    metrics = parse_metrics(prometheus.metrics_text(found, sorted(hot)))
    assert sum(metrics["jitter_workshop_check"].values()) == len(found)
    assert len(metrics["jitter_workshop_check"]) == 4 * len(found)
    assert sum(metrics["jitter_workshop_checks"].values()) == len(found)
    assert len(metrics["jitter_workshop_hot_cpu"]) == len(hot)
    assert prometheus.metrics_text(found, sorted(hot)) == prometheus.metrics_text(list(reversed(found)), sorted(hot))


def test_labels_are_escaped() -> None:
    assert prometheus.escape('a"b\\c\nd') == 'a\\"b\\\\c d'


@pytest.mark.parametrize("width", [70, 78, 100])
def test_a_path_below_a_fact_is_in_one_piece(width: int) -> None:
    path = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    lines = [line.plain for line in fact_lines([Fact("Isolated CPUs", "none"), Fact("Clock", "tsc", "", path)], width)]
    assert sum(path in line for line in lines) == 1
    assert max(map(len, lines)) <= width


def test_the_source_of_a_fact_begins_below_its_value_unless_its_own_path_is_too_long() -> None:
    long, short = "/sys/devices/system/clocksource/clocksource0/current_clocksource", "/sys/kernel/mm/ksm/run"
    found = [Fact("Clock", "tsc", "", long), Fact("Kernel samepage merging", "0", "off", short)]
    lines = [line.plain for line in fact_lines(found, 78)]
    begins = [next(line.index(path) for line in lines if path in line) for path in (long, short)]
    assert begins == [12, lines[-2].index("off")]
    wide = [line.plain for line in fact_lines(found, 120)]
    assert {line.index("/sys/") for line in wide if "/sys/" in line} == {wide[1].index("tsc")}


@pytest.mark.parametrize("width", [34, 58, 100])
def test_a_long_title_of_a_fact_is_not_cut(width: int) -> None:
    found = [Fact("Update of memory statistics", "can be better: 1 → 10 s", "a worker"), Fact("Load", "0.10", "few")]
    lines = [line.plain for line in fact_lines(found, width)]
    assert max(map(len, lines)) <= width
    told = [line for line in lines if "Update of memory statistics" in line]
    assert len(told) == 1
    assert told[0].startswith("Update")
    assert "…" not in "".join(lines)
