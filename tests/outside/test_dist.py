"""Check the files of ``make dist``: each runs where there is no checkout, no compiler and no network."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from jitter_workshop import __version__
from jitter_workshop.classroom import bundle
from jitter_workshop.classroom.install import NAME, needed
from tests.lab import guestroot
from tests.lab.fetch import cache_dir

REPOSITORY = Path(__file__).parents[2]
CACHE = cache_dir()
"""The lab machine's folder: a test itself has another cache than its user."""
PYTHONS = ("python3.11", "python3.12", "python3.13")


dist = guestroot.loaded(guestroot.DIST)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that ``make dist`` fills, from a copy of the checkout as a clone would be."""
    out = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, REPOSITORY / "scripts" / "dist.py", "--out", out], check=True, timeout=300)
    return out


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wheel of each package that the product needs, made of this environment's files."""
    folder = tmp_path_factory.mktemp("house")
    for one in needed():
        if one.metadata["Name"] != NAME:
            name, data = bundle.wheel(one)
            (folder / name).write_bytes(data)
    return folder


def world(home: Path, *folders: Path) -> dict[str, str]:
    """The variables of a user whose PATH has these folders alone: no compiler, no checkout."""
    home.mkdir(parents=True, exist_ok=True)
    return {"HOME": str(home), "PATH": os.pathsep.join(map(str, folders)), "LANG": "C.UTF-8", "TERM": "dumb"}


def ran(words: list[object], environment: dict[str, str], said: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, words)),
        env=environment,
        cwd=environment["HOME"],
        input=said,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def installed(home: Path, house: Path, what: list[object], python: str = sys.executable) -> Path:
    """A fresh environment of this Python with ``what`` installed from files alone; the folder of its programs."""
    home.mkdir()
    if python == sys.executable:
        venv.create(home / "v", with_pip=True)
    else:
        subprocess.run([python, "-m", "venv", home / "v"], check=True, timeout=120)
    programs = home / "v" / "bin"
    words = [programs / "python", "-m", "pip", "install", "-q", "--no-index", "--find-links", house, *what]
    done = ran(words, world(home, programs))
    assert done.returncode == 0, done.stderr
    return programs


def own_wheel(made: Path) -> Path:
    (found,) = made.glob(f"*_{os.uname().machine}.whl")
    return found


@pytest.fixture(scope="module")
def home(made: Path, house: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder with the wheel in a fresh environment (``v``)."""
    place = tmp_path_factory.mktemp("user") / "home"
    installed(place, house, [own_wheel(made)])
    return place


def works(programs: Path, environment: dict[str, str]) -> None:
    """Check what an installed copy has to do: it reads the host, measures, and opens the course."""
    tool = programs / "jitter-workshop"
    looked = ran([tool, "status", "--json"], environment)
    assert looked.returncode in (0, 1), looked.stderr
    assert json.loads(looked.stdout)["checks"]
    run = ran([tool, "measure", "--json", "--duration", "1"], environment)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["format_version"] == 1
    listed = ran([tool, "lessons", "list"], environment)
    assert "Pinning" in listed.stdout, listed.stderr
    walked = ran([tool, "--plain"], environment, "q\n")
    assert walked.returncode == 0, walked.stderr
    assert "Pinning" in walked.stdout
    asked = ran([tool, "doctor", "--json"], environment)
    assert (asked.returncode, json.loads(asked.stdout)["can_measure"]) == (0, True), asked.stdout


def test_a_wheel_runs_where_there_is_nothing_but_python(home: Path) -> None:
    programs = home / "v" / "bin"
    environment = world(home, programs)
    works(programs, environment)
    code = "import jitter_workshop; print(jitter_workshop.__file__)"
    where = ran([programs / "python", "-c", code], environment).stdout
    assert Path(where.strip()).is_relative_to(home / "v")


def test_a_source_distribution_builds_without_a_network(made: Path, house: Path, tmp_path: Path) -> None:
    """The build tools are this environment's; only the build itself has a compiler."""
    (source,) = made.glob("*.tar.gz")
    wheels = tmp_path / "wheels"
    words = ["-m", "pip", "wheel", "-q", "--no-index", "--no-build-isolation", "--no-deps", "-w", wheels, source]
    if ran([sys.executable, "-m", "pip", "--version"], dict(os.environ) | {"HOME": str(tmp_path)}).returncode:
        pytest.skip("this environment has no pip (made by uv)")
    done = ran([sys.executable, *words], dict(os.environ) | {"HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    programs = installed(tmp_path / "home", house, list(wheels.iterdir()))
    works(programs, world(tmp_path / "home", programs))


@pytest.mark.parametrize("python", PYTHONS)
def test_one_wheel_serves_each_python(python: str, made: Path, house: Path, tmp_path: Path) -> None:
    """The native core is of cffi's limited API. (Other packages are for one version: only the core is loaded here.)"""
    place = other_python(python)
    if place is None:
        pytest.skip(f"no {python} here")
    programs = installed(tmp_path / "home", house, ["--no-deps", own_wheel(made)], place)
    folder = ran([programs / "python", "-c", "import jitter_workshop as j; print(j.__path__[0])"], world(tmp_path))
    core = Path(folder.stdout.strip()) / "bench" / "_native.abi3.so"
    assert core.is_file(), folder.stderr
    code = f"import ctypes; print(ctypes.PyDLL({str(core)!r}).PyInit__native)"
    loaded = ran([programs / "python", "-c", code], world(tmp_path))
    assert loaded.returncode == 0, loaded.stderr
    told = ran([programs / "python", "-m", "jitter_workshop", "--version"], world(tmp_path))
    assert told.stdout.split() == ["jitter-workshop", __version__], told.stderr


def other_python(name: str) -> str | None:
    """Return a Python that makes environments, by its name; of a version manager's names only those that it runs."""
    for place in (shutil.which(name), *map(str, Path.home().glob(f".pyenv/versions/{name[6:]}.*/bin/{name}"))):
        if place and not subprocess.run([place, "-c", "import ensurepip"], capture_output=True, check=False).returncode:
            return place
    return None


@pytest.mark.parametrize("with_what", ["uvx", "pipx"])
def test_it_runs_from_the_wheel_without_being_installed(
    with_what: str, made: Path, house: Path, tmp_path: Path
) -> None:
    program = shutil.which(with_what)
    if program is None:
        pytest.skip(f"no {with_what} here")
    file = own_wheel(made)
    if with_what == "uvx":
        offline = ["--offline", "--no-index", "--find-links", house, "--python", sys.executable]
        words: list[object] = [program, *offline, "--from", file, "jitter-workshop"]
    else:
        offline = ["--pip-args", f"--no-index --find-links {house}", "--python", sys.executable]
        words = [program, "run", *offline, "--spec", file, "jitter-workshop"]
    (tmp_path / "bin").mkdir()
    for name in ("realpath", "dirname"):  # the script that uv makes calls both
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or name)
    environment = world(tmp_path / "home", tmp_path / "bin")
    told = ran([*words, "--version"], environment)
    assert told.stdout.split() == ["jitter-workshop", __version__], told.stderr
    listed = ran([*words, "lessons", "list"], environment)
    assert "Pinning" in listed.stdout, listed.stderr


def test_each_file_is_in_the_sums_and_each_tag_is_that_of_the_core(made: Path, tmp_path: Path) -> None:
    lines = (made / dist.SUMS).read_text().splitlines()
    assert {line.partition("  ")[2] for line in lines} == {file.name for file in made.iterdir()} - {dist.SUMS}
    for line in lines:
        digest, _, name = line.partition("  ")
        assert hashlib.sha256((made / name).read_bytes()).hexdigest() == digest
    for file in made.glob("*.whl"):
        shutil.unpack_archive(file, tmp_path / file.stem, "zip")
        (core,) = (tmp_path / file.stem).rglob("*.abi3.so")
        found = dist.needs(core)
        assert file.name == f"jitter_workshop-{__version__}-cp311-abi3-{dist.tag(found)}.whl"
        (metadata,) = (tmp_path / file.stem).glob("*.dist-info/WHEEL")
        assert f"Tag: cp311-abi3-{dist.tag(found)}" in metadata.read_text().splitlines()


def test_auditwheel_agrees_with_the_tag(made: Path) -> None:
    program = shutil.which("auditwheel")
    if program is None:
        pytest.skip("no auditwheel here")
    for file in made.glob("*.whl"):
        said = subprocess.run([program, "show", file], capture_output=True, text=True, check=True, timeout=60).stdout
        assert f'"{file.stem.rpartition("-")[2]}"' in " ".join(said.split())


@pytest.fixture
def arm(made: Path, tmp_path: Path) -> list[str]:
    """The words that run arm64's Python on the unpacked wheel, under emulation."""
    emulator = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    files = list(made.glob("*_aarch64.whl"))
    if emulator is None or not files:
        pytest.skip("no qemu-user-static here" if files else "no cross compiler for arm64 here")
    try:
        root = guestroot.find("arm64", CACHE)
    except guestroot.kernels.NotHere as error:
        pytest.skip(error.sentence())
    shutil.unpack_archive(files[0], tmp_path / "wheel", "zip")
    return [emulator, "-L", str(root.folder / "usr"), str(root.folder) + guestroot.PYTHON]


def test_the_wheel_for_arm64_loads_and_reads_its_clock_under_emulation(arm: list[str], tmp_path: Path) -> None:
    code = (
        "import platform; from jitter_workshop.bench.native import lib;"
        "source = lib.JW_CLOCK_CNTVCT;"
        "first = lib.jw_clock_read(source); second = lib.jw_clock_read(source);"
        "print(platform.machine(), lib.jw_clock_usable(source), 0 < first <= second)"
    )
    modules = Path(arm[-1]).parents[2] / guestroot.MODULES
    environment = world(tmp_path / "home") | {"PYTHONPATH": f"{tmp_path / 'wheel'}:{modules}", "PYTHONHOME": arm[2]}
    done = ran([*arm, "-c", code], environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["aarch64", "1", "True"]


@pytest.mark.parametrize("library", ["libpython3.11.so.1.0", "libc.musl-x86_64.so.1", "libm.so.6.evil"])
def test_a_core_that_needs_another_library_has_no_tag(library: str) -> None:
    assert dist.tag(dist.Needs("x86_64", ("libc.so.6", "ld-linux-x86-64.so.2"), (2, 34))) == "manylinux_2_34_x86_64"
    with pytest.raises(dist.Failed):
        dist.tag(dist.Needs("x86_64", ("libc.so.6", library), (2, 34)))


def test_a_file_that_is_no_library_of_glibc_has_no_tag(tmp_path: Path) -> None:
    (tmp_path / "core.so").write_bytes(b"\x7fELF nothing")
    with pytest.raises(dist.Failed):
        dist.needs(tmp_path / "core.so")


def test_headers_with_other_sizes_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if dist.compiler("aarch64") is None:
        pytest.skip("no cross compiler for arm64 here")
    assert dist.headers("aarch64", tmp_path)
    monkeypatch.setitem(dist._SIZED, "LONG", "short")
    with pytest.raises(dist.Failed):
        dist.headers("aarch64", tmp_path)
