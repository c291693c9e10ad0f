"""The report in a real browser: its charts are there, its figures are the session's, nothing is loaded, run or
complained about; light, dark, on a phone and on paper."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.cli import main
from jitter_workshop.model.palette import PALETTES
from jitter_workshop.model.run import Run
from jitter_workshop.report import html
from jitter_workshop.session.store import SessionStore
from jitter_workshop.stats.scale import nice_ns
from tests import browser, madereports
from tests.browser import Browser
from tests.madeup import make_run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(browser.installed() is None, reason=f"none of {', '.join(browser.NAMES)} is installed"),
]

READABLE = 4.5
"""The contrast that WCAG 2 asks of text at level AA."""

CONTRASTS = """
(() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const found = rgb(getComputedStyle(e).backgroundColor);
      if (found[3] === 255) return found;
    }
    return [255, 255, 255, 255];
  };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || parent.closest('style, title, desc, .key')) continue;
    const inside = parent.closest('svg');
    const style = getComputedStyle(parent);
    const [a, b] = [light(rgb(inside ? style.fill : style.color)), light(ground(parent))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < %f) poor.push(contrast.toFixed(2) + ' ' + walker.currentNode.data.trim().slice(0, 40));
  }
  return poor;
})()
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "rich.html"
    path.write_text(html.html_page(madereports.rich(), None), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with Browser() as opened:
        yield opened


def as_if_new(window: Browser, page: Path, media: str = "screen", scheme: str = "light", width: int = 1280) -> None:
    window.size(width)
    window.emulate(media, scheme)
    window.open(page.as_uri())


def test_a_report_makes_no_requests_and_gives_no_browser_errors(window: Browser, page: Path) -> None:
    as_if_new(window, page)
    assert [one for one in window.requests() if not one.startswith("data:")] == [page.as_uri()]
    assert window.complaints() == []
    assert window.ask("document.scripts.length") == 0
    assert window.ask("document.querySelectorAll('img, iframe, object, embed, form, [onerror], [onclick]').length") == 0
    assert window.ask("document.compatMode") == "CSS1Compat"


def test_a_server_is_asked_for_the_page_alone(window: Browser, page: Path) -> None:
    asked: list[str] = []

    class BackgroundGate(http.server.SimpleHTTPRequestHandler):
        def log_request(self, *_: Any) -> None:
            asked.append(self.path)

    serve = functools.partial(BackgroundGate, directory=str(page.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            window.open(f"http://127.0.0.1:{server.server_port}/{page.name}")
        finally:
            server.shutdown()
            thread.join()
    assert asked == [f"/{page.name}"]
    assert window.complaints() == []


def as_rgb(colour: str) -> str:
    """A colour of the palette, as a browser says it."""
    return f"rgb({', '.join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5))})"


def test_the_charts_are_there(window: Browser, page: Path) -> None:
    as_if_new(window, page)
    for number, overlay in enumerate(madereports.rich().overlays, 1):
        wide, high = window.ask(
            f"(() => {{ const b = document.querySelector('#chart-{number}').getBoundingClientRect();"
            " return [b.width, b.height]; })()"
        )
        assert wide > 600
        assert high > 300
        drawn = window.ask(
            f"[...document.querySelectorAll('#chart-{number} polyline')]"
            ".map((line) => [line.getTotalLength(), getComputedStyle(line).stroke])"
        )
        assert len(drawn) >= len(overlay.curves)
        assert all(length > 10 and colour.startswith("rgb") for length, colour in drawn)
    # Each picture keeps its own colours: the first curve of both has the same one, though only one has a published one.
    strokes = [window.ask(f"getComputedStyle(document.querySelector('#chart-{n} .c0')).stroke") for n in (1, 2)]
    assert strokes[0] == strokes[1] == as_rgb(PALETTES["light"].curves[0])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(scheme: str, window: Browser, page: Path) -> None:
    as_if_new(window, page, scheme=scheme)
    window.ask("document.querySelectorAll('details').forEach((d) => d.open = true)")
    paper = window.ask("getComputedStyle(document.documentElement).backgroundColor")
    assert paper == as_rgb(PALETTES[scheme].background)
    assert window.ask(CONTRASTS % READABLE) == []


def test_a_phone_need_not_scroll_sideways(window: Browser, page: Path) -> None:
    as_if_new(window, page, width=360)
    assert window.ask("document.documentElement.scrollWidth") <= 360
    assert window.ask("Math.min(...[...document.querySelectorAll('p, td, th')].map((e) => "
                      "parseFloat(getComputedStyle(e).fontSize)))") >= 12  # fmt: skip


def test_on_paper_everything_is_open_and_black_on_white(window: Browser, page: Path) -> None:
    as_if_new(window, page, media="print", scheme="dark")
    assert window.ask("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    assert window.ask("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    closed = window.ask(
        "[...document.querySelectorAll('details')].filter((d) => !d.querySelector('td, li')"
        ".checkVisibility({contentVisibilityAuto: true})).length"
    )
    assert closed == 0
    assert window.ask("document.querySelectorAll('details').length") >= 5
    assert window.ask("getComputedStyle(document.querySelector('#chart-1 .few')).strokeDasharray") != "none"
    assert (
        window.ask("getComputedStyle(document.querySelector('#chart-1 polyline:not(.few)')).strokeDasharray") == "none"
    )
    assert window.ask(CONTRASTS % READABLE) == []
    # A4 without its margins is 265 mm high, and two charts fit it; a heading stays with its figure.
    assert window.ask("document.querySelector('#chart-1').getBoundingClientRect().height") <= 92 / 25.4 * 96 + 1
    printed = window.pdf()
    assert printed.startswith(b"%PDF")
    assert printed.count(b"/Type /Page\n") >= 5


def test_the_figures_of_a_report_in_the_browser_are_those_of_the_session(
    window: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with SessionStore().create("monday <script>", "lab03") as opened:
        for number in range(4):
            seen = madereports.values(number)
            opened.add_run(
                *make_run([seen[:2_000], seen[2_000:]], run_id=f"20260101-00000{number}-aaaa", label=f"<b>{number}</b>")
            )
        runs = opened.runs()
    path = tmp_path / "out.html"
    assert main(["report", "-o", str(path)]) == 0
    assert capsys.readouterr().out.strip().endswith("out.html")
    as_if_new(window, path)
    assert window.complaints() == []
    assert [one for one in window.requests() if not one.startswith("data:")] == [path.as_uri()]
    shown = window.ask(
        "[...document.querySelectorAll('table.runs tbody tr')].map((row) => [...row.cells].map((c) => c.innerText))"
    )
    heads = window.ask("[...document.querySelectorAll('table.runs thead th')].map((cell) => cell.innerText)")
    assert len(shown) == len(runs)
    for run, cells in zip(runs, shown, strict=True):
        _same(run, dict(zip(heads, cells, strict=True)))


def _same(run: Run, told: dict[str, str]) -> None:
    summary = run.histograms[run.main_histogram]
    assert told["run"].startswith(run.label)
    assert run.id in told["run"]
    for percentile, value in summary.percentiles.items():
        if f"p{percentile}" in told:
            assert told[f"p{percentile}"].startswith(nice_ns(value))
    assert told["max"] == nice_ns(summary.max)
    assert told["time in stalls"] == f"{nice_ns(run.stalls.stolen_ns_per_second)}/s"
