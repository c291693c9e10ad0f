"""The agent's connection: hostile callers, leases, signals, two agents at once."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.agent import protocol
from jitter_workshop.tuning.planning import digest
from tests import tuned_tree
from tests.tuned_tree import HOT, Agent, contents, journals, planned

WORDS = ("governor", "thp", "stat-interval", "numa-balancing")
REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return tuned_tree.make(tmp_path)


def wait_until_given_back(tree: Path, before: dict[str, bytes], meanwhile: Callable[[], None] = lambda: None) -> None:
    """Wait for an event that no pipe tells of; the limit only ends a test that has failed. ``meanwhile``: what is done
    each time that it has not happened yet."""
    for _ in range(1500):
        if contents(tree) == before and journals(tree) == []:
            return
        meanwhile()
        time.sleep(0.02)
    raise AssertionError("it was not given back")


HOSTILE: list[bytes] = [
    b"",
    b"\0\xff\xfe",
    b"null",
    b"[]",
    b"12",
    b'"apply"',
    b"{}",
    b'{"verb":7}',
    b'{"verb":"shell","command":"id"}',
    b'{"verb":"apply"}',
    b'{"verb":"apply","wanted":"governor","cpus":"2-3"}',
    b'{"verb":"apply","wanted":[],"cpus":"2-3"}',
    b'{"verb":"apply","wanted":["../../etc/passwd=x"],"cpus":"2-3","shown":[]}',
    b'{"verb":"apply","wanted":["governor=../../x"],"cpus":"2-3","shown":[]}',
    b'{"verb":"apply","wanted":["governor"],"cpus":"0-99999999","shown":[]}',
    b'{"verb":"apply","wanted":["governor"],"cpus":"7","shown":[]}',
    b'{"verb":"apply","wanted":["governor"],"cpus":"","shown":[]}',
    b'{"verb":"apply","wanted":["governor"],"cpus":["2"],"shown":[]}',
    b'{"verb":"apply","wanted":["governor"],"cpus":"2-3","shown":"all"}',
    b'{"verb":"apply","wanted":["governor"],"cpus":"2-3","shown":[],"lease":1e999}',
    b'{"verb":"apply","wanted":["governor"],"cpus":"2-3","shown":[],"lease":NaN}',
    b'{"verb":"apply","wanted":["governor"],"cpus":"2-3","shown":[],"lease":-1}',
    b'{"verb":"apply","wanted":["governor"],"cpus":"2-3","shown":[],"lease":true}',
    b'{"verb":"apply","wanted":["temperature"],"cpus":"2-3","shown":[]}',
    b'{"verb":"restore","tunables":["nothing"]}',
    b'{"verb":"restore","tunables":[7]}',
    b'{"verb":"plan","wanted":' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"verb":"hello","id":' + b"9" * 5000 + b"}",
    b'{"verb":"plan","wanted":["' + b"a" * 5000 + b'"],"cpus":"2"}',
]


def test_hostile_lines_are_answered_and_write_nothing(tree: Path) -> None:
    before = contents(tree)
    with Agent(tree) as agent:
        for line in HOSTILE:
            agent.send(line)
            reply = agent.receive()
            assert reply is not None, line[:80]
            harmless = b'"temperature"' in line or b'"hello"' in line
            assert "error" in reply or harmless, line[:80]
        assert agent.ask("hello")["protocol"] == protocol.PROTOCOL
    assert contents(tree) == before
    assert journals(tree) == []


@pytest.mark.parametrize("seed", range(5))
def test_garbage_is_answered(seed: int, tree: Path) -> None:
    chance = random.Random(seed)
    before = contents(tree)
    good = json.dumps({"id": 1, "verb": "apply", "wanted": ["thp"], "cpus": HOT, "shown": []}).encode()
    with Agent(tree) as agent:
        for _ in range(60):
            line = bytearray(good)
            for _ in range(chance.randint(1, 6)):
                line[chance.randrange(len(line))] = chance.randrange(1, 256)
            agent.send(bytes(line).replace(b"\n", b" "))
            assert agent.receive() is not None
    assert contents(tree) == before


def test_a_line_without_end_closes_the_connection(tree: Path) -> None:
    agent = Agent(tree)
    piece = b"x" * 65_536
    with contextlib.suppress(BrokenPipeError):
        for _ in range(100):
            os.write(agent._to.fileno(), piece)
    assert "too long" in agent.receive()["error"]["message"]
    assert agent.end() == 0


def test_a_second_apply_on_a_connection_with_a_lease_is_refused(tree: Path) -> None:
    from dataclasses import replace

    drawn = planned(tree, ("thp",))
    assert replace(drawn.changes[0], lease=True).lease
    with Agent(tree) as agent:
        agent.apply(drawn, ("thp",), lease=5.0)
        assert "already made temporary changes" in agent.apply(drawn, ("thp",))["error"]["message"]


# Leases ---------------------------------------------------------------------------------------------------------------


def test_a_lease_ends_with_its_connection(tree: Path) -> None:
    before = contents(tree)
    agent = Agent(tree)
    assert agent.apply(planned(tree, WORDS), WORDS, lease=60.0)["applied"]
    assert contents(tree) != before
    assert agent.end() == 0
    assert contents(tree) == before
    assert journals(tree) == []


def test_bye_tells_the_restored_changes(tree: Path) -> None:
    before, drawn = contents(tree), planned(tree, WORDS)
    with Agent(tree) as agent:
        agent.apply(drawn, WORDS, lease=60.0)
        assert len(agent.ask("bye")["restored"]) == len(drawn.changes)
    assert contents(tree) == before


def test_silence_ends_a_lease_while_the_pipe_is_open(tree: Path) -> None:
    """A stopped parent (SIGSTOP) closes nothing and says nothing."""
    before = contents(tree)
    agent = Agent(tree)
    agent.apply(planned(tree, WORDS), WORDS, lease=1.0)
    wait_until_given_back(tree, before)
    assert agent.end() == 0


def test_a_heartbeat_keeps_a_lease(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """It outlives a lease of the same length that begins later, on another host, and gets no heartbeat."""
    other = tuned_tree.make(tmp_path_factory.mktemp("other"))
    before, others = contents(tree), contents(other)
    agent, silent = Agent(tree), Agent(other)
    agent.apply(planned(tree, WORDS), WORDS, lease=2.0)
    assert silent.apply(planned(other, WORDS), WORDS, lease=2.0)["applied"]
    wait_until_given_back(other, others, meanwhile=lambda: agent.send(b'{"verb":"heartbeat"}'))
    silent.end()
    assert agent.ask("hello")["protocol"] == protocol.PROTOCOL
    assert contents(tree) != before
    agent.end()
    assert contents(tree) == before


def test_keep_makes_a_lease_stay(tree: Path) -> None:
    before = contents(tree)
    with Agent(tree) as agent:
        journal_id = agent.apply(planned(tree, WORDS), WORDS, lease=60.0)["journal_id"]
        assert agent.ask("keep") == {"kept": [journal_id]}
    assert contents(tree) != before
    with Agent(tree) as agent:
        agent.ask("restore")
    assert contents(tree) == before


def test_keep_of_one_part_leaves_the_rest_leased(tree: Path) -> None:
    before = contents(tree)
    first, second = WORDS[:1], WORDS[1:]
    assert second
    with Agent(tree) as agent:
        agent.apply(planned(tree, first), first, lease=60.0)
        between = contents(tree)
        kept = agent.apply(planned(tree, second), second, lease=60.0)["journal_id"]
        assert contents(tree) != between
        assert agent.ask("keep", journals=[kept, "nobody's"]) == {"kept": [kept]}
    assert planned(tree, second).changes == (), "what was kept stands"
    assert planned(tree, first).changes, "what was leased is given back"
    with Agent(tree) as agent:
        agent.ask("restore")
    assert contents(tree) == before


def test_an_error_in_a_lease_still_gives_it_back(tree: Path) -> None:
    before = contents(tree)
    agent = Agent(tree)
    agent.apply(planned(tree, WORDS), WORDS, lease=60.0)
    agent.send(b"\0\0\0")
    agent.receive()
    agent.end()
    assert contents(tree) == before


def test_a_caller_that_does_not_read_is_gone(tree: Path) -> None:
    before = contents(tree)
    agent = Agent(tree)
    agent.apply(planned(tree, WORDS), WORDS, lease=1.0)
    asks = b'{"verb":"plan","wanted":["governor","irq-affinity","idle-states=0"],"cpus":"2-3"}\n' * 2000
    os.set_blocking(agent._to.fileno(), False)
    view = memoryview(asks)
    while view:
        try:
            view = view[os.write(agent._to.fileno(), view) :]
        except BlockingIOError:
            break
    wait_until_given_back(tree, before)
    agent._from.close()
    agent._from = open(os.devnull, "rb")  # noqa: PTH123, SIM115
    assert agent.end() == 0


# Signals and others ---------------------------------------------------------------------------------------------------


def test_sigterm_stops_and_gives_a_lease_back(tree: Path) -> None:
    before = contents(tree)
    agent = Agent(tree)
    agent.apply(planned(tree, WORDS), WORDS, lease=60.0)
    agent.signal(signal.SIGTERM)
    assert agent.receive() is None
    assert agent.end() == 0
    assert contents(tree) == before


def test_sigterm_between_two_steps_leaves_whole_steps(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    drawn = planned(tree)
    before = contents(tree)
    agent = Agent(tree, "term=3")
    result = agent.apply(drawn)
    assert result is not None
    stopped = [one for one in result["refused"] if one["reason"] == "the apply was stopped before this write"]
    assert stopped
    assert len(result["applied"]) + len(stopped) == len(drawn.changes)
    agent.end()
    with Agent(tree) as other:
        assert len(other.ask("restore")["restored"]) == len(result["applied"])
    assert contents(tree) == before


def test_a_caller_that_leaves_stops_the_writing(tree: Path) -> None:
    before, drawn = contents(tree), planned(tree)
    agent = Agent(tree)
    request = {"verb": "apply", "wanted": list(tuned_tree.MANY), "cpus": HOT, "lease": None}
    agent.send(json.dumps(request | {"shown": [digest(change) for change in drawn.changes]}).encode())
    assert agent.end() == 0
    assert contents(tree) == before or journals(tree)
    with Agent(tree) as other:
        assert other.ask("restore")["left_alone"] == []
    assert contents(tree) == before


def test_two_agents_take_turns_and_a_lease_keeps_the_other_out(tree: Path) -> None:
    before = contents(tree)
    with Agent(tree) as one, Agent(tree) as two:
        one.apply(planned(tree, ("thp",)), ("thp",), lease=120.0)
        refused: Any = two.apply(planned(tree, ("stat-interval",)), ("stat-interval",))
        assert "a running workshop (process" in refused["error"]["message"]
        assert refused["error"]["advice"] == "press u in that workshop, or end that workshop"
        assert "user 1000" in refused["error"]["message"]
        assert "has changed this host" in two.ask("restore")["error"]["message"]
        one.ask("bye")
        assert two.apply(planned(tree, ("stat-interval",)), ("stat-interval",))["applied"]
        two.ask("restore")
    assert contents(tree) == before


def test_a_killed_holder_frees_the_host(tree: Path) -> None:
    before = contents(tree)
    one = Agent(tree)
    one.apply(planned(tree, WORDS), WORDS, lease=120.0)
    one.signal(signal.SIGKILL)
    assert one.end() == -signal.SIGKILL
    assert contents(tree) != before
    with Agent(tree) as two:
        two.ask("restore")
    assert contents(tree) == before


ROOTS_MODULES = """
abc ast bisect builtins codecs collections contextlib copy copyreg dataclasses dis encodings enum errno fcntl
fnmatch functools genericpath glob hashlib importlib inspect io ipaddress itertools json keyword linecache
marshal ntpath opcode operator os pathlib posix posixpath re reprlib resource select signal stat string sys time
token tokenize types typing unicodedata urllib warnings weakref zipimport zlib
"""
"""Modules of the standard library that root's process may load before it runs a program of the system (then subprocess
too); ipaddress and urllib.parse come with pathlib."""


def test_roots_process_loads_only_its_own_rooms() -> None:
    code = (
        "import sys; sys.path.append('.');"
        "from jitter_workshop.agent import ownership, start;"
        "from jitter_workshop.tuning.tunables.registry import tunables; tunables();"
        "from jitter_workshop.tuning.setting_types.kinds import kind_of; kind_of('grub');"
        "print('\\n'.join(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    ours = {name.split(".")[1] for name in loaded if name.startswith("jitter_workshop.")}
    assert ours == {"agent", "errors", "host", "model", "paths", "tuning"}
    others = {name.partition(".")[0] for name in loaded if not name.startswith(("_", "jitter_workshop"))}
    assert others <= set(ROOTS_MODULES.split()), sorted(others - set(ROOTS_MODULES.split()))


def run_entry(**options: Any) -> subprocess.CompletedProcess[str]:
    """The agent's entry under an interpreter that every user may run; skipped where there is none."""
    for python in (sys.executable, shutil.which("python3", path="/usr/bin:/usr/local/bin") or ""):
        argv = [python, "-I", "-S", "-B", "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
        with contextlib.suppress(OSError):
            if subprocess.run(argv, check=False, capture_output=True, **options).returncode == 0:
                entry = str(REPOSITORY / "jitter_workshop/agent/__main__.py")
                return subprocess.run(
                    [*argv[:-2], entry], input="", capture_output=True, text=True, check=False, timeout=60, **options
                )
    pytest.skip("no interpreter here that other users may run")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_the_entry_refuses_a_user_other_than_root() -> None:
    done = run_entry(user=65534, group=65534, extra_groups=[])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("jitter-workshop agent: ")
    assert len(done.stderr.splitlines()) == 1
    assert "has to run as root; use sudo" in done.stderr


def test_each_write_of_a_plan_has_its_own_digest(tree: Path) -> None:
    changes = planned(tree).changes
    assert len({digest(change) for change in changes}) == len(changes)
