"""Test the sentences about settings that are applied, restored or kept."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from jitter_workshop.errors import HeldError, HostError
from jitter_workshop.flow.host_ops.agent_connection import NOTHING
from jitter_workshop.model.change import LeftAlone, Restored, RestoreResult
from jitter_workshop.presenter.host.changes import (
    GONE_ALREADY,
    OTHERS_MAY_MEASURE,
    applied_now_text,
    came_back,
    farewell,
    list_ids,
    not_applied,
    others_warned,
    restore_result,
    standing_lines,
)
from jitter_workshop.presenter.host.plan import apply_command, script_command
from jitter_workshop.presenter.text.lines import written
from jitter_workshop.tuning.journal import AppliedBy, Entry

BACK = RestoreResult(
    (Restored("governor", "/a", "performance", "powersave"), Restored("governor", "/b", "performance", "powersave")),
    (LeftAlone("thp", "/c\x1b[2J", "never", "always", "somebody else has changed it"),),
    True,
)


def test_restored_and_left_alone_settings_are_told() -> None:
    said = came_back(BACK)
    assert said.startswith("Restored: 1 setting, 2 writes")
    assert "writes (governor). Left alone: /c" in said
    assert "has changed it (the value is now always)." in said
    assert said.endswith("the next boot.")
    assert "\x1b" not in said
    assert came_back(NOTHING) == "There was nothing to restore."
    assert "need no restore" not in came_back(BACK, 3)
    assert came_back(BACK, 8, 2).startswith("Restored: 1 setting, 2 of 6 writes (governor).")
    assert "3 writes need no restore: the task has ended" in came_back(BACK, 8, 2)
    nothing = written(restore_result(NOTHING, 80))
    assert nothing == "Nothing to restore: no setting of this host is changed by this tool.\n"
    waiting = RestoreResult((), (), True)
    assert came_back(waiting).startswith(f"{GONE_ALREADY} ")
    assert came_back(waiting).endswith("the next boot.")
    first, second = written(restore_result(waiting, 80)).splitlines()
    assert first == GONE_ALREADY
    assert second.endswith("the next boot.")


def test_a_held_host_is_told_with_its_holder_and_the_wait() -> None:
    held = HeldError("a running workshop (process 7) has changed this host", "press u in that workshop")
    said = " ".join(written(not_applied(held, ["thp"], 80, ["isolate", "thp"])).split())
    assert "NOT APPLIED A running workshop (process 7) has changed this host." in said
    assert "Applied by others now: isolate, thp." in said
    assert "wait until that one is finished" in said
    assert "sudo" not in said
    other = " ".join(written(not_applied(HostError("no rights"), ["thp"], 80)).split())
    assert "sudo sh plan.sh apply" in other
    assert "wait until" not in other


def test_many_ids_are_not_all_named() -> None:
    assert list_ids(f"id{n}" for n in range(8)).split(", ") == ["id0", "id1", "id2", "id3", "id4", "id5 and 2 more"]
    assert list_ids(["thp", "governor", "thp"]) == "thp, governor"


def test_applied_changes_are_told_with_their_counts_and_none_gives_no_text() -> None:
    assert applied_now_text(()) == ""
    said = applied_now_text(("governor", "thp", "governor"))
    assert said.startswith("Applied now: 2 settings, 3 writes")
    assert said.endswith(" writes (governor, thp)")


def test_a_change_of_an_affinity_names_its_task() -> None:
    call = "sched_setaffinity(20@900)"
    one = Entry("000001-a", 1, "kernel-threads", call, "affinity", "0-3", "0", "now", False, "", None)
    assert f"  {call} of kworker/1:0: 0-3 → 0" in written(
        standing_lines([one], (), (), {call: "kworker/1:0\x1b"}, {}, 80)
    )


def test_the_script_takes_the_words_as_they_are() -> None:
    assert (
        apply_command(("once:nohz-full", "once:isolcpus"))
        == "sudo jitter-workshop apply --next-boot nohz-full isolcpus"
    )
    assert apply_command(("governor", "once:isolcpus")) == "sudo jitter-workshop apply governor once:isolcpus"
    assert script_command(("governor", "boost=off")) == "jitter-workshop plan --sh governor boost=off > plan.sh"


@pytest.mark.parametrize(
    ("held", "result", "standing", "said"),
    [
        (False, NOTHING, (), ""),
        (True, RestoreResult(BACK.restored, (), False), (), "Restored: 1 setting, 2 writes (governor).\n"),
        (True, NOTHING, (), "The changes had been restored already.\n"),
        (
            True,
            NOTHING,
            ("thp",),
            "Some changes may not have been restored.\n"
            "Applied now: 1 setting, 1 write (thp). 'jitter-workshop restore' restores them.\n",
        ),
        (
            False,
            NOTHING,
            ("thp",),
            "Applied now: 1 setting, 1 write (thp). 'jitter-workshop restore' restores them.\n",
        ),
    ],
)
def test_the_plain_terminal_is_told_how_it_ended(held: bool, result: RestoreResult, standing: Any, said: str) -> None:
    agent_connection = SimpleNamespace(holding=held, close=lambda: result)
    context = SimpleNamespace(agent_connection=agent_connection)
    assert farewell(cast("Any", SimpleNamespace(context=context, written=lambda: standing))) == said


def test_only_settings_of_others_that_a_key_restores_are_warned_of() -> None:
    others = {one: AppliedBy("a", "2026-01-02T03:04:05Z", 4242, running=True) for one in ("governor", "isolation")}
    first, last = others_warned(others, ["isolation", "thp"])
    assert first.startswith("Not yours: isolation, applied")
    assert last == OTHERS_MAY_MEASURE
    assert others_warned(others, ["thp"]) == []
    assert others_warned({}, ["isolation"]) == []
