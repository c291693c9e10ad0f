"""The parts that save a practice machine, without one: KVM's clock, the base's files, the saved machine's key, its
memory, the server's forks."""

from __future__ import annotations

import base64
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.paths import assets
from jitter_workshop.practice import base, images, kernels, kvm, running, saved
from jitter_workshop.practice.base import Base
from jitter_workshop.practice.qemu import MachineOptions
from jitter_workshop.practice.shape import SHAPES
from tests.unit.test_practice_machines import holder, made_kernel

FIGURES = st.floats(0, 1e9, allow_nan=False)


@given(FIGURES, FIGURES)
def test_kvm_is_used_where_it_is_measured_to_be_faster(turn_ns: float, exit_us: float) -> None:
    answer = kvm.parse_probe(json.dumps({"turn_ns": turn_ns, "exit_us": exit_us}))
    assert answer.usable == (turn_ns <= kvm.MOST_TURN_NS and exit_us <= kvm.MOST_EXIT_US)
    assert (answer.turn_ns, answer.exit_us) == (turn_ns, exit_us)


SAID = st.dictionaries(st.sampled_from(["turn_ns", "error"]), st.text(max_size=9))


@given(st.text(max_size=40) | SAID.map(json.dumps))
def test_kvm_is_never_used_without_figures_of_the_measuring_process(said: str) -> None:
    answer = kvm.parse_probe(said)
    assert (answer.usable, answer.turn_ns) == (False, None)
    assert answer.why


def test_without_a_device_nothing_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kvm, "DEVICE", str(tmp_path / "kvm"))
    assert "there is no" in kvm.probe_kvm.__wrapped__().why
    (tmp_path / "kvm").write_text("no device")
    answer = kvm.probe_kvm.__wrapped__()
    # The process has the true path: it measures, or it says why it cannot.
    assert answer.why


def test_the_guests_loop_jumps_to_its_own_instructions() -> None:
    program = kvm.guest_code(7)
    assert program[:6] == b"\x66\xb9\x07\x00\x00\x00"
    loop, again = program.index(b"\x75"), program.index(b"\xeb")
    assert loop + 2 + int.from_bytes(program[loop + 1 : loop + 2], signed=True) == 6
    assert again + 2 + int.from_bytes(program[again + 1 :], signed=True) == 0


PAGES = st.lists(st.sampled_from([b"", b"\0", b"x", b"last"]), max_size=12)


@given(PAGES)
def test_a_copy_of_memory_is_equal_and_keeps_the_holes(
    tmp_path_factory: pytest.TempPathFactory, pages: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("memory")
    source = os.memfd_create("source")
    try:
        os.ftruncate(source, len(pages) * 65536)
        for number, content in enumerate(pages):
            if content:
                os.pwrite(source, content, number * 65536 + 100)
        saved.copy_sparse(source, folder / "copy")
        assert (folder / "copy").read_bytes() == os.pread(source, len(pages) * 65536 + 1, 0)
        written = sum(1 for content in pages if content)
        assert (folder / "copy").stat().st_blocks * 512 <= written * 65536
    finally:
        os.close(source)


def test_a_new_saved_machine_takes_the_place_of_the_older_ones_of_its_shape(tmp_path: Path) -> None:
    for name in ("laptop-1", "laptop-2", "server-1"):
        (tmp_path / "saved" / name).mkdir(parents=True)
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "memory0").write_bytes(b"m" * 5_000_000)
    saved.keep_machine(tmp_path / "made", tmp_path / "saved" / "laptop-3")
    assert sorted(path.name for path in (tmp_path / "saved").iterdir()) == ["laptop-3", "server-1"]
    assert saved.used_mib(tmp_path) >= 4


@pytest.fixture
def keyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    monkeypatch.setattr(kernels, "tool", lambda name: sys.executable)
    monkeypatch.setattr(images, "acpi_table", lambda cache, hardware: Path(__file__))
    cache = tmp_path / "cache"
    made_kernel(cache)
    image = tmp_path / "image"
    image.write_bytes(b"image")

    def key(digest: str = "d", **changes: Any) -> str:
        options = replace(MachineOptions.of(SHAPES["laptop"]), base=image, **changes)
        return saved.key(options, cache, Base(image, (), digest))

    return key


def test_a_saved_machine_counts_for_the_same_machine_alone(
    keyed: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = keyed()
    assert (keyed(), keyed(kept=Path("/home/l/kept"))) == (first, first), "what is kept is mounted after the start"
    keys = [
        keyed(digest="other"),
        keyed(append="quiet2"),
        keyed(hardware=SHAPES["server"].hardware),
        keyed(accelerator="kvm"),
        keyed(hostname="other"),
    ]
    made_kernel(tmp_path / "cache", b"\x7fELF another kernel")
    keys.append(keyed())
    (tmp_path / "image").write_bytes(b"another image")
    keys.append(keyed())
    monkeypatch.setattr(kernels, "tool", lambda name: "/bin/sh")
    keys.append(keyed())
    assert len({first, *keys}) == 1 + len(keys)


def test_a_base_has_each_link_on_the_way_to_a_file(tmp_path: Path) -> None:
    real, tree = tmp_path / "real", tmp_path / "tree"
    real.mkdir()
    tree.mkdir()
    (real / "lib.so.1.2").write_text("library")
    (real / "lib.so.1").symlink_to("lib.so.1.2")
    (tmp_path / "way").symlink_to("real")
    stamps = base._copy(str(tmp_path / "way" / "lib.so.1"), tree)
    copied = tree / tmp_path.relative_to("/")
    assert (copied / "way" / "lib.so.1").resolve() == (copied / "real" / "lib.so.1.2").resolve()
    assert (copied / "way" / "lib.so.1").read_text() == "library"
    names = ("way", "real/lib.so.1", "real/lib.so.1.2")
    assert stamps == {str(tmp_path / name): base.file_stamp(str(tmp_path / name)) for name in names}
    assert str(real / "lib.so.1") in base._with_links({str(real / "lib.so.1.2")})
    assert base._copy(str(tmp_path / "gone" / "file"), tree) == {}


def test_a_base_counts_until_one_of_its_files_changes(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("one = 1")
    folder = base._folder(tmp_path)
    folder.mkdir(parents=True)
    (folder / base.IMAGE).write_bytes(b"image")
    said = {"of": base._VERSION, "modules": ["os", "json"], "files": {str(module): base.file_stamp(str(module))}}
    (folder / base.MANIFEST).write_text(json.dumps(said))
    found = base.find_base(tmp_path)
    assert found is not None
    assert (found.image, found.modules) == (folder / base.IMAGE, ("os", "json"))
    (folder / base.MANIFEST).write_text(json.dumps(said | {"of": ["0.0"]}))
    assert base.find_base(tmp_path) is None
    module.write_text("one = 11")
    (folder / base.MANIFEST).write_text(json.dumps(said))
    assert base.find_base(tmp_path) is None
    (folder / base.MANIFEST).write_text(json.dumps(said)[:-5])
    assert base.find_base(tmp_path) is None
    (folder / base.MANIFEST).unlink()
    assert base.find_base(tmp_path) is None


def test_files_that_no_start_has_used_for_a_month_are_removed(tmp_path: Path) -> None:
    files = [tmp_path / "base" / "new" / base.MANIFEST, tmp_path / "base" / "old" / base.MANIFEST]
    files += [tmp_path / "saved" / "new" / base.ABOUT, tmp_path / "saved" / "old" / base.ABOUT]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_text("{}")
        if file.parent.name == "old":
            os.utime(file, (0, 0))
    base.forget(tmp_path)
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/*")) == ["base/new", "saved/new"]


RESETTER = """
import signal, sys, threading
from pathlib import Path
from jitter_workshop.practice import running
with running.folder("laptop", Path(sys.argv[1])) as own:
    signal.signal(running.RESET_SIGNAL, lambda *_: running.count_reset(own))
    running.count_reset(own)
    print("held", flush=True)
    while True:
        threading.Event().wait(0.02)
"""


def test_a_reset_reaches_the_machines_with_a_terminal_and_names_the_others(tmp_path: Path) -> None:
    words = [sys.executable, "-c", RESETTER, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        other = holder("server", tmp_path)
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "held\n"
            for _ in range(3):
                done, others = running.ask_for_reset(tmp_path)
                assert ([one.pid for one in done], [one.pid for one in others]) == ([child.pid], [other.pid])
            assert running.ask_for_reset(tmp_path, "bare") == ([], [])
            assert other.poll() is None, "a request ended a machine that cannot be reset"
        finally:
            child.kill()
            other.kill()
            other.wait()


SERVER = """
import os, runpy, sys
server = runpy.run_path(sys.argv[1], run_name="server")
server["port"].__globals__["port"] = lambda name: int(sys.argv[2])
if server["main"]():
    from jitter_workshop.cli import main
    sys.exit(main())
"""


class _Server:
    """The guest's server in a process of this host, on one end of a stream."""

    def __init__(self, tmp_path: Path) -> None:
        self.errors = tmp_path / "server.err"
        self.stream, end = socket.socketpair()
        self.stream.settimeout(60)
        places = {f"XDG_{name}_HOME": str(tmp_path / name) for name in ("STATE", "CACHE", "CONFIG")}
        with self.errors.open("wb") as errors:
            self.child = subprocess.Popen(
                [sys.executable, "-c", SERVER, str(assets() / "practice" / "server.py"), str(end.fileno())],
                pass_fds=[end.fileno()],
                env={**os.environ, **places},
                stderr=errors,
            )
        end.close()
        self.lines = self.stream.makefile("rb")
        assert "ready" in json.loads(self.lines.readline())

    def ask(self, **request: Any) -> dict[str, Any]:
        self.stream.sendall(json.dumps(request).encode() + b"\n")
        answer: dict[str, Any] = json.loads(self.lines.readline())
        return answer

    def run(self, argv: list[str], **more: Any) -> tuple[int, bytes, bytes]:
        """The code, stdout and stderr of a program."""
        return self.rest(self.start(argv, **more))

    def start(self, argv: list[str], **more: Any) -> dict[str, Any]:
        env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "MARK": "x"}
        return self.ask(id=7, start=argv, cwd="/", env=env, **more)

    def rest(self, told: dict[str, Any]) -> tuple[int, bytes, bytes]:
        """Return the code, stdout and stderr of a program of which ``told`` is the first answer."""
        out = {"out": b"", "err": b""}
        while "code" not in told:
            for name in out.keys() & told.keys():
                out[name] += base64.b64decode(told[name])
            told = json.loads(self.lines.readline())
        return told["code"], out["out"], out["err"]

    def close(self) -> None:
        self.stream.sendall(b'{"power": "off"}\n')
        self.child.wait(60)
        self.lines.close()
        self.stream.close()


def test_a_fork_of_the_server_is_the_program(tmp_path: Path) -> None:
    server = _Server(tmp_path)
    try:
        words = [sys.executable, "-m", "jitter_workshop"]
        version = server.run([*words, "--version"])
        assert server.ask(id=1, load=["no.such.module"])["result"].keys() == {"no.such.module"}
        assert server.ask(id=1, load=["json", "jitter_workshop.cli"])["result"] == {}
        assert server.run([*words, "--version"]) == version
        code, out, err = server.run([*words, "no-such-verb"])
        assert (code, out) == (2, b"")
        assert b"no-such-verb" in err
        # With a terminal, of the size that is asked for.
        code, out, _ = server.run([*words, "--help"], terminal=[24, 70])
        assert code == 0
        assert b"practice" in out
        # A command that is no fork runs as before, and the server is alive.
        assert server.run(["sh", "-c", "echo $MARK; exit 3"]) == (3, b"x\n", b"")
        server.stream.sendall(json.dumps({"id": 8, "start": ["/no/such"], "cwd": "/", "env": {}}).encode() + b"\n")
        assert json.loads(server.lines.readline())["os_error"][0] == errno.ENOENT
    finally:
        server.close()
    assert server.errors.read_text() == "", "what each fork would do was not done in advance"


OUTLIVED = """
until [ -e "$0/go" ]; do sleep 0.01; done
{ until [ -e "$0/say" ]; do sleep 0.01; done; echo late; : >"$0/said"; } &
"""


def test_output_that_comes_behind_the_end_of_its_program_does_not_end_the_server(tmp_path: Path) -> None:
    """The stopped server sees the end of the program first, and in the same call the output of the program's child."""
    server = _Server(tmp_path)
    try:
        told = server.start(["sh", "-c", OUTLIVED, str(tmp_path)])
        server.child.send_signal(signal.SIGSTOP)
        try:
            (tmp_path / "go").touch()
            stat = Path(f"/proc/{told['pid']}/stat")
            wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z")
            (tmp_path / "say").touch()
            wait_until((tmp_path / "said").exists)
        finally:
            server.child.send_signal(signal.SIGCONT)
        assert server.rest(told) == (0, b"late\n", b"")
        assert server.ask(id=8, ping=True) == {"id": 8, "result": None}
    finally:
        server.close()
    assert server.errors.read_text() == ""


def wait_until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)
