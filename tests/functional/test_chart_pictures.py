"""chart -o: SVG and PNG files, stdout, and what must not be written over by halves."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from jitter_workshop.cli import main
from jitter_workshop.session.store import SessionStore

MakeRun = Callable[..., tuple[Any, Any]]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(autouse=True)
def a_run(make_run: MakeRun) -> None:
    with SessionStore().create("monday", "lab03") as opened:
        opened.add_run(*make_run([[100] * 1000 + [3_000_000] * 100], run_id="a", label="<b>base\x1b[31m"))


def test_a_png_is_written_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "x.PNG"
    assert main(["chart", "--theme", "dark", "-o", str(target)]) == 0
    assert capsys.readouterr().out == f"{target}\n"
    assert target.read_bytes().startswith(PNG)


@pytest.mark.parametrize("kind", ["percentiles", "ccdf", "histogram"])
def test_every_kind_is_a_picture(kind: str, tmp_path: Path) -> None:
    assert main(["chart", "--kind", kind, "-o", str(tmp_path / "x.png")]) == 0
    assert main(["chart", "--kind", kind, "-o", str(tmp_path / "x.svg")]) == 0
    ElementTree.parse(tmp_path / "x.svg")


def test_stdout_gets_a_picture(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["chart", "-o", "-", "--theme", "light"]) == 0
    text = capfdbinary.readouterr().out
    assert ElementTree.fromstring(text).tag.endswith("svg")
    assert b"prefers-color-scheme" not in text
    assert main(["chart", "-o", "-", "--format", "png"]) == 0
    assert capfdbinary.readouterr().out.startswith(PNG)


def test_bytes_do_not_go_to_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert main(["chart", "-o", "-", "--format", "png"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "this binary output" in captured.err
    assert main(["chart", "-o", "-"]) == 0
    assert capsys.readouterr().out.startswith("<svg")


def test_an_older_picture_is_replaced_whole(tmp_path: Path) -> None:
    target = tmp_path / "x.svg"
    target.write_text("old")
    assert main(["chart", "-o", str(target)]) == 0
    assert target.read_text().startswith("<svg")
    assert [p.name for p in tmp_path.iterdir() if p.suffix == ".svg" or p.name.startswith(".")] == ["x.svg"]


def test_a_link_is_never_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    real, link = tmp_path / "real.svg", tmp_path / "link.svg"
    real.write_text("another's")
    link.symlink_to("real.svg")
    assert main(["chart", "-o", str(link)]) == 2
    captured = capsys.readouterr()
    assert "a link to real.svg," in captured.err
    assert "not followed" in captured.err
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert link.is_symlink()
    assert real.read_text() == "another's"


def test_a_new_picture_is_as_readable_as_any_new_file(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        assert main(["chart", "-o", str(tmp_path / "x.svg")]) == 0
    finally:
        os.umask(old)
    assert (tmp_path / "x.svg").stat().st_mode & 0o777 == 0o640


def test_a_full_disk_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("jitter_workshop.flow.reporting.files._fill", full)
    assert main(["chart", "-o", str(tmp_path / "x.svg")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "no space left" in captured.err
    assert captured.err.count("\n") == 1
    assert not (tmp_path / "x.svg").exists()


def test_chart_refuses_a_folder_as_its_output_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.svg").mkdir()
    assert main(["chart", "-o", str(tmp_path / "x.svg")]) == 2
    assert "name a file in this folder" in capsys.readouterr().err


def test_a_chart_on_a_terminal_loads_no_picture_library() -> None:
    code = "import sys\nfrom jitter_workshop.cli import main\nmain(['chart'])\n"
    code += "sys.exit('jitter_workshop.report.pictures.png' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False).returncode == 0


def test_without_the_library_svg_is_offered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "jitter_workshop.report.pictures.png", raising=False)
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert main(["chart", "-o", str(tmp_path / "x.png")]) == 2
    assert "use -o FILE.svg" in capsys.readouterr().err


def test_the_space_between_two_runs_is_filled(
    make_run: MakeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with SessionStore().open("monday") as opened:
        opened.add_run(*make_run([[100] * 1000 + [20_000] * 100], run_id="b", label="after"))
    assert main(["chart", "a", "b"]) == 0
    better = capsys.readouterr().out
    with pytest.MonkeyPatch.context() as forced:
        forced.setenv("JITTER_WORKSHOP_MARKS", "ascii")
        assert _said(capsys, ["chart", "a", "b"]).isascii()
    assert "░" in better
    assert "▒" not in better
    assert main(["chart", "b", "a", "-o", str(tmp_path / "x.svg")]) == 0
    assert "area worse" in (tmp_path / "x.svg").read_text()
    capsys.readouterr()
    assert main(["chart", "b", "--published"]) == 0
    assert "░" not in capsys.readouterr().out


def test_a_heat_map_is_text_and_a_picture_and_an_old_run_says_why_not(
    make_run: MakeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with SessionStore().open("monday") as opened:
        quiet, loud = [100] * 200, [100] * 200 + [3_000_000] * 20
        opened.add_run(*make_run([quiet, loud] * 8, run_id="b", label="bursts"))
        blocks = opened.blocks_file("a")
    assert "16 blocks of 250 ms" in _said(capsys, ["chart", "--kind", "heatmap", "bursts"])
    assert main(["chart", "--kind", "heatmap", "b", "-o", str(tmp_path / "x.svg")]) == 0
    assert "h1" in {e.get("class") for e in ElementTree.parse(tmp_path / "x.svg").iter()}
    assert main(["chart", "--kind", "heatmap", "b", "-o", str(tmp_path / "x.png")]) == 0
    assert (tmp_path / "x.png").read_bytes().startswith(PNG)
    capsys.readouterr()
    blocks.unlink()
    for wrong, why in (
        (["a"], "keeps no accumulator_transit of single blocks"),
        (["a", "b"], "shows one run"),
        (["b", "--published"], "cannot be drawn with other curves"),
    ):
        assert main(["chart", "--kind", "heatmap", *wrong]) == 2
        assert why in capsys.readouterr().err


def _said(capsys: pytest.CaptureFixture[str], words: list[str]) -> str:
    assert main(words) == 0
    return capsys.readouterr().out
