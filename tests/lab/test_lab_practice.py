"""The verb ``practice``: a command's output and code, the learner's terminal, what stays on the host, what a later
start and a reset bring back, and what a killed one leaves: nothing."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from jitter_workshop.commands.common import guest
from jitter_workshop.practice import kernels, running
from jitter_workshop.practice.qemu import KEPT
from jitter_workshop.practice.shape import SHAPES
from tests.lab import fetch
from tests.terminal import Terminal

pytestmark = pytest.mark.lab

CACHE = fetch.cache_dir()
GATEWAY = "10.0.2.2"
"""QEMU's own, in the network that it makes for a guest."""
VERB = [sys.executable, "-m", "jitter_workshop", "practice"]
MAIN = "import sys; from jitter_workshop import cli; sys.exit(cli.main(sys.argv[1:]))"
GOVERNOR = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the lab's kernels, for all tests here: the first start in it boots and saves the machine."""
    try:
        kernels.check_tools()
        found = [kernels.find_kernel(flavour, CACHE) for flavour in sorted({shape.kernel for shape in SHAPES.values()})]
    except kernels.NotHere as reason:
        if os.environ.get("JITTER_WORKSHOP_LAB") == "required":
            pytest.fail(f"the lab machine is required and not here: {reason}", pytrace=False)
        pytest.skip(f"the lab machine is not here: {reason}")
    top = tmp_path_factory.mktemp("cache")
    for kernel in found:
        own = top / "jitter-workshop" / "practice" / kernel.folder.name
        (own / "modules").mkdir(parents=True)
        for file in (
            kernel.vmlinux,
            kernel.config,
            *kernel.modules,
            kernel.folder / "release",
            kernel.folder / "order",
        ):
            (own / file.relative_to(kernel.folder)).symlink_to(file)
        kernels.write_sums(own, [])
    return top


@pytest.fixture
def home(tmp_path: Path, cache: Path) -> dict[str, str]:
    """An environment with a home of its own."""
    places = {f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("STATE", "CONFIG")}
    return {**os.environ, **places, "XDG_CACHE_HOME": str(cache), "HOME": str(tmp_path)}


def cache_of(home: dict[str, str]) -> Path:
    return Path(home["XDG_CACHE_HOME"]) / "jitter-workshop" / "practice"


def machines(home: dict[str, str]) -> list[int]:
    """The processes of QEMU whose folders are below this home."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (place / "cmdline").read_bytes()
            if words.startswith(b"/usr/bin/qemu") and str(cache_of(home)).encode() in words:
                found.append(int(place.name))
    return found


def wait_until(true: object, what: str) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not true():  # type: ignore[operator]
        assert time.monotonic() < ends, what
        time.sleep(0.1)


def test_a_command_has_its_streams_and_its_code_and_changes_nothing_outside(home: dict[str, str]) -> None:
    script = f"echo performance >{GOVERNOR}; cat {GOVERNOR}; wc -c; echo to stderr >&2; echo stays >stays; exit 7"
    typed = b"0123456789" * 50_000
    done = subprocess.run([*VERB, "--", "sh", "-c", script], env=home, input=typed, capture_output=True, check=False)
    assert (done.returncode, done.stdout.split()) == (7, [b"performance", b"500000"]), done
    assert b"an emulator" in done.stderr.splitlines()[0]
    assert done.stderr.splitlines()[-1] == b"to stderr"
    kept = Path(home["XDG_STATE_HOME"]) / "jitter-workshop" / "practice" / "laptop"
    assert [path.name for path in kept.iterdir()] == ["stays"]
    assert (machines(home), list((cache_of(home) / running.FOLDER).iterdir())) == ([], [])


def ran(home: dict[str, str], script: str, *options: str) -> tuple[str, str]:
    """The output of a shell inside, and the words about the start."""
    words = [*VERB, *options, "--", "sh", "-c", script]
    done = subprocess.run(words, env=home, capture_output=True, text=True, check=True, timeout=2 * PATIENCE_S)
    return done.stdout, done.stderr


def test_a_later_start_continues_as_a_machine_of_its_own(home: dict[str, str]) -> None:
    told = "date +%s; cat /proc/sys/kernel/random/uuid /proc/uptime; jitter-workshop --version"
    outputs = []
    for _ in range(3):
        began = time.time()
        out, err = ran(home, told)
        clock, *rest = out.splitlines()
        assert began - 1 <= int(clock) <= time.time() + 1, "the clock stood still with the saved machine"
        outputs.append((err.split()[0], *rest))
    assert [first for first, *_ in outputs[1:]] == ["Continuing", "Continuing"], outputs
    assert len({uuid for _, uuid, *_ in outputs}) == 3, "two machines got the same chance"
    assert {version.split()[0] for *_, version in outputs} == {"jitter-workshop"}
    (saved,) = (cache_of(home) / "saved").iterdir()
    # Of a state that cannot be used the next start makes a new one.
    with (saved / "state").open("r+b") as state:
        state.truncate(1000)
    assert ran(home, "echo up")[0] == "up\n"
    (saved,) = (cache_of(home) / "saved").iterdir()
    assert (saved / "state").stat().st_size > 100_000


CPU = "/sys/devices/system/cpu"
SHOWS = {
    "rt": (
        "cat /sys/kernel/realtime; uname -v | grep -c PREEMPT_RT;"
        " cat {cpu}/smt/active {cpu}/cpu0/cpufreq/scaling_driver",
        ["1", "1", "1", "acpi-cpufreq"],
    ),
    # The highest frequency is that of the boost; without it, the nominal one is left.
    "amd": (
        "cat {cpu}/cpu0/cpufreq/scaling_driver {cpu}/cpufreq/boost; grep -c AuthenticAMD /proc/cpuinfo;"
        " a=$(cat {cpu}/cpu0/cpufreq/scaling_max_freq); echo 0 >{cpu}/cpufreq/boost;"
        " b=$(cat {cpu}/cpu0/cpufreq/scaling_max_freq); [ $b -lt $a ] && echo lower;"
        " echo performance >{cpu}/cpu1/cpufreq/scaling_governor; cat {cpu}/cpu1/cpufreq/scaling_governor",
        ["amd-pstate", "1", "4", "lower", "performance"],
    ),
}
"""Shape → a program of the shell, and the lines that it prints there."""


@pytest.mark.parametrize("shape", SHOWS)
def test_a_shape_agrees_with_its_sentence_after_a_boot_and_from_the_saved_machine(
    home: dict[str, str], shape: str
) -> None:
    script, lines = SHOWS[shape]
    for how in ("Booting", "Continuing"):
        out, err = ran(home, script.format(cpu=CPU), "--shape", shape)
        assert (out.splitlines(), err.split()[0]) == (lines, how)


def test_a_network_ends_at_its_gateway_and_there_is_none_unless_it_is_asked_for(home: dict[str, str]) -> None:
    box, reached = "/lab/busybox", "&& echo reached || echo not"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = f"{box} ping -c 1 -W 5 {GATEWAY} >/dev/null 2>&1 {reached};"
        script += f" {box} timeout 8 {box} nc {GATEWAY} {port} </dev/null >/dev/null 2>&1 {reached};"
        script += f" {box} ping -c 1 -W 3 192.0.2.1 >/dev/null 2>&1 {reached}"
        assert ran(home, script)[0].split() == ["not", "not", "not"]
        assert ran(home, script, "--network")[0].split() == ["reached", "not", "not"]
        server.settimeout(0.1)
        with pytest.raises(TimeoutError):
            server.accept()


def test_a_panic_is_named_and_enter_starts_the_machine_again(home: dict[str, str]) -> None:
    keep = {name: home[name] for name in home if name.startswith("XDG_") or name == "HOME"}
    shell = Terminal(MAIN, ["practice", "--", "sh"], **keep)
    try:

        def answers(line: str, expected: bytes) -> None:
            shell.type(f"{line}\n")
            wait_until(lambda: (shell.read() and False) or expected in shell.seen, repr(expected))

        answers("", b"# ")
        answers("echo c >/proc/sysrq-trigger", b"panicked: sysrq triggered crash")
        wait_until(lambda: (shell.read() and False) or guest.AGAIN.encode() in shell.seen, "the offer")
        assert b"Kernel panic" in (cache_of(home) / running.LAST_LOG).read_bytes()
        shell.seen = b""
        answers("", b"# ")
        answers("echo up $((40 + 2))", b"up 42")
        # A machine whose emulator stands still does not answer: the keys of this host say so, and end it.
        (pid,) = machines(home)
        os.kill(pid, signal.SIGSTOP)
        shell.type("x")
        wait_until(lambda: (shell.read() and False) or b"has not answered" in shell.seen, "the question")
        shell.type("q")
        assert shell.ended() == 128 + signal.SIGTERM
        assert machines(home) == []
        assert termios.tcgetattr(shell.slave) == shell.before
    finally:
        shell.close()


def test_kill_9_leaves_no_process_and_stop_ends_one_in_order(home: dict[str, str]) -> None:
    for how in ("kill", "stop"):
        verb = subprocess.Popen([*VERB, "--", "sh", "-c", "echo up; sleep 1000"], env=home, stdout=subprocess.PIPE)
        try:
            assert verb.stdout is not None
            assert verb.stdout.readline() == b"up\n"
            (owner,) = running.owners_of_machines(cache_of(home))
            assert owner.pid == verb.pid
            assert len(machines(home)) == 1
            if how == "kill":
                verb.kill()
                verb.wait(PATIENCE_S)
                wait_until(lambda: not machines(home), "QEMU outlives its parent")
                assert running.owners_of_machines(cache_of(home)) == []
            else:
                done = subprocess.run([*VERB, "stop"], env=home, capture_output=True, text=True, check=True)
                assert f"pid {verb.pid}" in done.stdout
                assert verb.wait(PATIENCE_S) == 128 + signal.SIGTERM
                assert machines(home) == []
                # The start of this one has removed the files that the killed one had left.
                assert list((cache_of(home) / running.FOLDER).iterdir()) == []
        finally:
            verb.kill()
            verb.wait()
            verb.stdout.close()


def test_the_terminal_goes_inside_with_its_size_and_signals_and_comes_back(home: dict[str, str]) -> None:
    import fcntl
    import struct

    keep = {name: home[name] for name in home if name.startswith("XDG_") or name == "HOME"}
    shell = Terminal(MAIN, ["practice", "--", "sh"], **keep)
    try:

        def answers(line: str, expected: str) -> None:
            shell.type(f"{line}\n")
            ends = time.monotonic() + PATIENCE_S
            while not re.search(expected, shell.seen.decode(errors="replace"), re.DOTALL):
                assert time.monotonic() < ends, (expected, shell.seen)
                shell.read()

        answers("", "# ")
        answers("stty size; echo $TERM; id -u", r"24 80\r\nxterm-256color\r\n0\r\n")
        fcntl.ioctl(shell.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 48, 160, 0, 0))
        os.kill(shell.child.pid, signal.SIGWINCH)
        answers("sleep 0.3; stty size", r"48 160\r\n")
        shell.type("sleep 1000\n")
        time.sleep(1)
        shell.type("\x03")
        answers("echo code $?", r"code 130\r\n")
        answers(f"cd; echo mine >{KEPT}/file; echo powersave >{GOVERNOR}; cat {GOVERNOR}", r"\npowersave\r\n")
        shell.seen = b""
        reset = subprocess.run([*VERB, "reset", "--json"], env=home, capture_output=True, check=True)
        answers("", "returns to the state.*# ")
        answers(f"cat {GOVERNOR} {KEPT}/file", r"\nschedutil\r\nmine\r\n")
        assert json.loads(reset.stdout)["reset"] == [shell.child.pid]
        answers("exit 3", "exit 3")
        assert shell.ended() == 3
        assert termios.tcgetattr(shell.slave) == shell.before
    finally:
        shell.close()
