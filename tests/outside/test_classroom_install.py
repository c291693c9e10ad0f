"""The tool's copy in a folder of its own: complete, checked, mended, and by an interpreter that everybody may run."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from jitter_workshop.agent.ownership import BY_OTHERS
from jitter_workshop.classroom import install
from jitter_workshop.errors import HostError

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="a copy of root's is made by root")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Path]:
    """Some files instead of the thousands that there are."""
    version = install.needed()[0].version
    names = [
        "__init__.py",
        "cli.py",
        "agent/__init__.py",
        "agent/__main__.py",
        "model/text.py",
        "bench/_native.abi3.so",
    ]
    names = [f"jitter_workshop/{name}" for name in names] + [f"jitter_workshop-{version}.dist-info/METADATA"]
    files = {}
    for number, name in enumerate(names):
        files[name] = tmp_path / "source" / str(number)
        files[name].parent.mkdir(exist_ok=True)
        files[name].write_text(f"number = {number}\n")
    monkeypatch.setattr(install, "_files", lambda: files)
    return files


def test_the_needs_of_the_tool_are_found_with_their_own_needs() -> None:
    names = [one.metadata["Name"].lower().replace("_", "-") for one in install.needed()]
    assert names[0] == "jitter-workshop"
    assert {
        "textual",
        "rich",
        "pygments",
        "markdown-it-py",
        "mdurl",
        "cffi",
        "pycparser",
        "hdrhistogram",
        "linkify-it-py",
    } <= set(names)
    assert "pytest" not in names
    assert len(set(names)) == len(names)


def test_a_package_that_is_not_installed_is_told() -> None:
    with pytest.raises(HostError, match="only its source"):
        install.needed("no-such-tool")


def test_of_this_tool_it_is_the_package_as_it_runs_here() -> None:
    files = install.files_of(install.needed()[0])
    assert files["jitter_workshop/agent/__main__.py"].samefile(
        install.__file__.replace("classroom/install", "agent/__main__")
    )
    assert "jitter_workshop/assets/class/sudoers" in files
    assert "jitter_workshop/lessons/course.toml" in files
    assert any(name.startswith("jitter_workshop/bench/_native") for name in files)
    assert not [name for name in files if name.endswith((".pyc", ".pth", "direct_url.json")) or "__editable__" in name]


@as_root
@pytest.mark.slow
def test_a_copy_runs_and_passes_its_checksums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = install.files_of(install.needed()[0])
    monkeypatch.setattr(install, "_files", lambda: files)
    into = str(tmp_path / "opt")
    assert "does not hold the tool" in install.problem(into)
    old = os.umask(0o077)
    try:
        install.install(into)
    finally:
        os.umask(old)
    assert install.problem(into) == ""
    words = ["sha256sum", "--check", "--quiet", install.MANIFEST]
    done = subprocess.run(words, cwd=into, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    launcher = tmp_path / "jw"
    launcher.write_text(install.launcher_text(f"{into}/lib", sys.executable))
    launcher.chmod(0o755)
    words = [str(launcher), "class", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, env={"PYTHONPATH": "/nowhere"}, cwd="/", check=True)
    assert "class init" in done.stdout
    modes = {stat.S_IMODE(path.stat().st_mode) for path in Path(into).rglob("*")}
    assert modes == {0o755, 0o644}
    assert {path.suffix for path in Path(into).rglob("*") if path.is_file() and path.stat().st_mode & 0o100} <= {".so"}
    compiled = next(Path(into).rglob("agent/__pycache__/protocol*.pyc")).read_bytes()
    assert f"{into}/lib/jitter_workshop/agent/protocol.py".encode() in compiled
    assert b"opt.new" not in compiled
    install.uninstall(into)
    install.uninstall(into)
    assert list(tmp_path.iterdir()) == [launcher] or not Path(into).exists()


@as_root
@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda lib: (lib / "jitter_workshop/cli.py").unlink(), "cli.py is missing"),
        (lambda lib: (lib / "jitter_workshop/cli.py").write_text("half"), "cli.py has changed since it was installed"),
        (lambda lib: (lib / "jitter_workshop/agent/__main__.py").unlink(), "does not hold the tool"),
        (lambda lib: (lib.parent / "SHA256SUMS").unlink(), "SHA256SUMS is missing"),
        (lambda lib: os.chown(lib / "jitter_workshop/cli.py", 1000, 0), "belongs to user 1000"),
        (lambda lib: (lib / "jitter_workshop/model").chmod(0o777), BY_OTHERS),
        (lambda lib: (lib / "jitter_workshop/model").chmod(0o700), "cannot be read by all users"),
        (lambda lib: (lib / "jitter_workshop/cli.py").chmod(0o600), "cannot be read by all users"),
        (lambda lib: (lib / "more.py").symlink_to(lib), ""),
    ],
)
def test_each_damage_is_named_and_mended(how, said, few: dict[str, Path], tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    into = str(tmp_path / "opt")
    install.install(into)
    how(Path(into) / "lib")
    assert said in install.problem(into)
    if said:
        for cut_off in (".new", ".old"):
            Path(into + cut_off).mkdir()
        install.install(into)
    assert install.problem(into) == ""
    assert {path.name for path in tmp_path.iterdir()} == {"opt", "source"}


@as_root
def test_another_build_is_told(few: dict[str, Path], tmp_path: Path) -> None:
    into = str(tmp_path / "opt")
    install.install(into)
    info = next((Path(into) / "lib").glob("*.dist-info"))
    info.rename(info.with_name("jitter_workshop-9.9.dist-info"))
    manifest = Path(into) / install.MANIFEST
    manifest.write_text(manifest.read_text().replace(info.name, "jitter_workshop-9.9.dist-info"))
    assert "holds version 9.9, but this is" in install.problem(into)
    install.install(into)
    few["jitter_workshop/more.py"] = next(iter(few.values()))
    assert "holds another build" in install.problem(into)


@as_root
def test_a_damaged_copy_does_not_mend_itself_from_itself(
    few: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    into = str(tmp_path / "opt")
    install.install(into)
    monkeypatch.setattr(install, "runs_from", lambda into: True)
    assert install.problem(into) == ""
    (Path(into) / "lib/jitter_workshop/cli.py").write_text("half")
    with pytest.raises(HostError, match=r"cli.py has changed since it was installed") as refused:
        install.install(into)
    assert "install.py" in refused.value.advice


@as_root
def test_a_source_that_does_not_compile_is_not_installed(few: dict[str, Path], tmp_path: Path) -> None:
    few["jitter_workshop/cli.py"].write_text("def half(")
    with pytest.raises(HostError, match="does not compile"):
        install.install(str(tmp_path / "opt"))
    assert not (tmp_path / "opt").exists()


def test_an_interpreter_has_to_be_everybodys_and_roots(tmp_path: Path) -> None:
    mine = tmp_path / "python3"
    mine.write_text("#!/bin/sh\necho other\n")
    mine.chmod(0o755)
    why = install.why_python_unfit(str(mine))
    assert why, "another program, below a folder of pytest's that others cannot enter"
    if os.geteuid() == 0:
        assert "is not open to all users" in why
        os.chown(mine, 1000, 0)
        assert "belongs to user 1000" in install.why_python_unfit(str(mine))
    assert "lies in a home" in install.why_python_unfit("/root/python3")


def test_another_version_of_python_is_refused(tmp_path: Path) -> None:
    for text, said in (("echo cpython-27", "different versions"), ("echo no sqlite >&2; exit 1", "no sqlite")):
        other = tmp_path / "python"
        other.write_text(f"#!/bin/sh\n{text}\n")
        other.chmod(0o755)
        assert said in install._of_another_kind(str(other))
    assert "cannot be run" in install._of_another_kind(str(tmp_path / "nothing"))


def test_where_no_interpreter_will_do_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "why_python_unfit", lambda path: "it is ada's")
    with pytest.raises(
        HostError, match="to root and can be run by all users, as a class host needs: it is ada's"
    ) as refused:
        install.interpreter()
    assert "install python3" in refused.value.advice
