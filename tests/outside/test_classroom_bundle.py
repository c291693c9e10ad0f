"""The archive that makes a class host without the internet: real wheels, the same bytes each time, and its script."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.util
import io
import platform
import subprocess
import sys
import tarfile
import zipfile
from importlib import resources
from pathlib import Path
from types import ModuleType

import pytest

from jitter_workshop.classroom import bundle, install
from jitter_workshop.errors import HostError

CLASS = b'name = "C"\nhot_cpus = "1"\n'


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole one, unpacked."""
    folder = tmp_path_factory.mktemp("bundle")
    bundle.write_bundle(folder / "class.tar.gz", CLASS)
    with tarfile.open(folder / "class.tar.gz") as packed:
        assert {info.mode for info in packed} == {0o644}
        assert {info.uid for info in packed} == {0}
        assert all(info.name.startswith("jitter-workshop-class/") and ".." not in info.name for info in packed)
        packed.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return folder / "jitter-workshop-class"


def test_it_holds_the_script_the_class_and_all_wheels(archive: Path) -> None:
    assert (archive / "class.toml").read_bytes() == CLASS
    shipped = resources.files("jitter_workshop.assets").joinpath("class", "install.py").read_bytes()
    assert (archive / "install.py").read_bytes() == shipped
    assert len(list((archive / "wheels").glob("*.whl"))) == len(install.needed())
    assert {path.name for path in archive.iterdir()} == {"install.py", "class.toml", "wheels", "ansible"}


def test_every_wheel_lists_exactly_its_files(archive: Path) -> None:
    for one in (archive / "wheels").glob("*.whl"):
        with zipfile.ZipFile(one) as wheel:
            assert wheel.testzip() is None
            names = set(wheel.namelist())
            record = next(name for name in names if name.endswith(".dist-info/RECORD") and name.count("/") == 1)
            rows = list(csv.reader(io.StringIO(wheel.read(record).decode())))
            assert {row[0] for row in rows} == names, one.name
            for name, digest, size in rows:
                if name != record:
                    data = wheel.read(name)
                    made = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
                    assert (digest, int(size)) == (f"sha256={made}", len(data)), name


def test_our_own_wheel_is_the_package_as_it_runs_here(archive: Path) -> None:
    ours = next((archive / "wheels").glob("jitter_workshop-*.whl"))
    assert ours.name.endswith(f"-cp311-abi3-linux_{platform.machine()}.whl")
    with zipfile.ZipFile(ours) as wheel:
        names = wheel.namelist()
        tag = wheel.read(next(name for name in names if name.endswith("/WHEEL"))).decode()
        assert f"Tag: cp311-abi3-linux_{platform.machine()}\n" in tag
        assert "Root-Is-Purelib: false" in tag
    assert "jitter_workshop/lessons/course.toml" in names
    assert "jitter_workshop/assets/class/jitter-workshop-agent.service" in names
    assert any(name.startswith("jitter_workshop/bench/_native") and name.endswith(".so") for name in names)
    assert not [name for name in names if "__editable__" in name or name.endswith((".pyc", "direct_url.json"))]


@pytest.mark.slow
def test_pip_installs_it_without_an_index(archive: Path, tmp_path: Path) -> None:
    place = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True, capture_output=True, timeout=120)
    words = ["install", "--quiet", "--no-index", "--no-compile", "--find-links", str(archive / "wheels")]
    pip = [str(place / "bin/python"), "-m", "pip", "--disable-pip-version-check", *words, "jitter-workshop[serve]"]
    done = subprocess.run(pip, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    words = [str(place / "bin/jitter-workshop"), "measure", "--workload", "spin", "--duration", "0.1", "--json"]
    state = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": "/usr/bin"}
    done = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False, env=state, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    checked = subprocess.run([pip[0], "-m", "pip", "check"], capture_output=True, text=True, timeout=100, check=False)
    assert checked.returncode == 0, checked.stdout


def test_the_same_things_give_the_same_bytes(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = install.needed()[1:3]
    monkeypatch.setattr(bundle, "needed", lambda: few)
    for name in ("a", "b"):
        bundle.write_bundle(tmp_path / name, CLASS)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_an_existing_file_is_not_overwritten_and_no_half_file_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "needed", lambda: ())
    out = tmp_path / "class.tar.gz"
    out.write_text("mine")
    with pytest.raises(HostError, match="exists already"):
        bundle.write_bundle(out, CLASS)
    assert out.read_text() == "mine"
    with pytest.raises(HostError, match="cannot be written"):
        bundle.write_bundle(tmp_path / "no" / "such", CLASS)

    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bundle.tarfile.TarFile, "addfile", full)
    with pytest.raises(HostError, match="No space left"):
        bundle.write_bundle(tmp_path / "new", CLASS)
    assert not (tmp_path / "new").exists()


def test_a_tool_that_was_not_installed_from_a_wheel_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "files_of", lambda one: {})
    with pytest.raises(HostError, match="jitter-workshop was not installed from a wheel"):
        bundle.wheel(install.needed()[0])


@pytest.mark.parametrize(
    ("tags", "name"),
    [
        (["py3-none-any"], "py3-none-any"),
        (["py2-none-any", "py3-none-any"], "py2.py3-none-any"),
        (
            ["cp311-cp311-manylinux_2_17_x86_64", "cp311-cp311-manylinux2014_x86_64"],
            "cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64",
        ),
        ([], "py3-none-any"),
    ],
)
def test_tags_in_a_name(tags: list[str], name: str) -> None:
    assert bundle._together(tags) == name


# The script -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """``install.py``, loaded as a module, on a Debian 12 with Python 3.12."""
    place = resources.files("jitter_workshop.assets").joinpath("class", "install.py")
    described = importlib.util.spec_from_file_location("class_install", str(place))
    assert described is not None
    assert described.loader is not None
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    monkeypatch.setattr(module.sys, "version_info", (3, 12, 4))
    monkeypatch.setattr(module.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(module.os, "confstr", lambda name: "glibc 2.36")
    return module


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("rich-15.0.0-py3-none-any.whl", True),
        ("pbr-7.1-py2.py3-none-any.whl", True),
        ("old-1-py2-none-any.whl", False),
        ("jitter_workshop-0.1.0-cp311-abi3-linux_x86_64.whl", True),
        ("jitter_workshop-0.1.0-cp313-abi3-linux_x86_64.whl", False),
        ("jitter_workshop-0.1.0-cp311-abi3-linux_aarch64.whl", False),
        ("psutil-7-cp36-abi3-manylinux_2_12_x86_64.manylinux2010_x86_64.whl", True),
        ("cffi-2-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", True),
        ("cffi-2-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", False),
        ("cffi-2-cp312-cp312-musllinux_1_2_x86_64.whl", False),
        ("new-2-cp312-cp312-manylinux_2_40_x86_64.whl", False),
        ("plotext-6-py3-none-manylinux_2_17_x86_64.whl", True),
        ("plotext-6-py3-none-manylinux_2_17_aarch64.whl", False),
    ],
)
def test_a_wheel_fits_or_does_not(name: str, fits: bool, script: ModuleType) -> None:
    assert script.fits(name) is fits


def test_on_another_c_library(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script.os, "confstr", lambda name: None)
    assert script.fits("cffi-2-cp312-cp312-musllinux_1_2_x86_64.whl")
    assert not script.fits("cffi-2-cp312-cp312-manylinux_2_17_x86_64.whl")


def test_every_wheel_made_here_fits_here(archive: Path) -> None:
    code = "import install, sys; sys.exit(not all(install.fits(w.name) for w in install.HERE.glob('wheels/*.whl')))"
    words = [sys.executable, "-B", "-c", code]
    assert subprocess.run(words, cwd=archive, timeout=60, check=False).returncode == 0


def test_wheels_that_do_not_fit_are_told_before_anything_is_unpacked(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(script, "HERE", tmp_path)
    assert script.main() == 2
    assert "no wheels are here" in capsys.readouterr().err
    (tmp_path / "wheels").mkdir()
    for name in ("a-1-py3-none-any.whl", "b-1-cp311-cp311-linux_x86_64.whl", "c-1-cp311-cp311-linux_x86_64.whl"):
        (tmp_path / "wheels" / name).write_text("no archive")
    assert script.main() == 2
    said = capsys.readouterr().err
    assert "not for Python 3.12 on x86_64:" in said
    assert "b-1-cp311-cp311-linux_x86_64.whl (and 1 more)" in said
    monkeypatch.setattr(script.sys, "version_info", (3, 10))
    assert script.main() == 2
    assert "Python 3.11 or newer" in capsys.readouterr().err
