"""Show the comparison of many hosts: the settings that differ as a table, and the figures as a table with a strip
chart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from jitter_workshop.model.fleet import FleetComparison, FleetFigure, FleetRow, FleetSetting
from jitter_workshop.model.text import (
    LINE,
    MOST_ENTRIES,
    MOST_NAMES,
    SENTENCE,
    SHORT,
    clean,
    cleaned_sentence,
    many,
    shortened,
)
from jitter_workshop.presenter.text.lines import Lines, small_title, table_lines, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.stats.comparison import amount, measure_name, stall_measure
from jitter_workshop.stats.fleet import ALL_ZERO
from jitter_workshop.stats.interval_plot import Axis, axis_of, interval_picture, scale, strip
from jitter_workshop.stats.scale import nice_number, ratio_text

WATCH_STALLS = "watch_stalls_per_hour_over_"
KEY = "▁▃▅█ the hosts · ● median of a host ÷ median of the others · ├──┤ its lowest and highest run · │ no difference"

_NAME, _LEAST_STRIP, _MOST_STRIP = 24, 15, 61
_MOST_ROWS, _MOST_SETTINGS = 20, 60
_HEIGHTS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class _Span:
    """Hold a host's value, its lowest and its highest run as ratios to the other hosts."""

    ratio: float | None
    low: float
    high: float | None


def fleet_lines(found: FleetComparison, width: int) -> Lines:
    """Return the comparison as lines: the answer in a sentence, then the settings, then the figures."""
    lines = wrap(Text(_headline(found), "bold text"), width)
    if found.mark:
        lines += wrap(f"All of them are marked as {found.mark}.", width, style="bad")
    if found.settings:
        lines += [Text(), small_title("SETTINGS THAT DIFFER"), *_settings(found.settings, width)]
    if "settings" not in found.notes:
        lines += wrap(f"Alike on all hosts: {many(found.settings_alike, 'setting')} and facts.", width, style="dim")
    lines += [Text(), small_title("FIGURES")]
    if found.way:
        lines += wrap(f"Measured in one way: {clean(found.way, LINE)}.", width, style="dim")
    if "rows" in found.notes:
        return lines + wrap(cleaned_sentence(found.notes["rows"], SENTENCE), width)
    for figure in found.figures:
        lines += _figure(figure, [row for row in found.rows if row.figure == figure.figure], width)
    if any(row.different for row in found.rows):
        lines += [Text(), *wrap(KEY, width, style="dim")]
    bound = f"At most {found.fdr:.0%} of such claims are expected to be false (--fdr)."
    return lines + wrap(bound, width, style="dim")


def figure_name(figure: str) -> str:
    """Return the name of a figure for people: ``stalls over 100 µs``, or ``watched stalls over 20 µs``."""
    if figure.startswith(WATCH_STALLS):
        return f"watched {measure_name(stall_measure_of(figure))}"
    return measure_name(figure)


def stall_measure_of(figure: str) -> str:
    """Return the name of the rate of a run's stalls with the same length as those of a watch's figure."""
    length = figure.removeprefix(WATCH_STALLS).removesuffix("_ns")
    return stall_measure(int(length)) if length.isdecimal() else figure


def _headline(found: FleetComparison) -> str:
    count = sum(host.different for host in found.hosts)
    if found.alike:
        return f"{many(len(found.hosts), 'host')}: no host was found to differ."
    names = [shortened(host.host, SHORT) for host in found.hosts if host.different]
    told = ", ".join(names[:MOST_NAMES]) + (f" and {count - MOST_NAMES} more" if count > MOST_NAMES else "")
    if not count:
        return f"{many(len(found.hosts), 'host')}: they differ in settings, and no value is the commonest."
    return f"{count} of {many(len(found.hosts), 'host')} {'differs' if count == 1 else 'differ'} from the rest: {told}."


def _settings(settings: Sequence[FleetSetting], width: int) -> Lines:
    rows: list[tuple[str, ...]] = [("setting", "commonest", "on", "other value", "hosts with it")]
    for one in settings[:_MOST_SETTINGS]:
        first = (clean(one.setting, SHORT), clean(one.commonest or "–", SHORT), f"{one.hosts} of {one.known}")
        for at, other in enumerate(one.others[:MOST_ENTRIES]):
            names = ", ".join(shortened(host, SHORT) for host in other.hosts[:MOST_NAMES])
            more = f" and {len(other.hosts) - MOST_NAMES} more" if len(other.hosts) > MOST_NAMES else ""
            rows.append((*(first if not at else ("", "", "")), clean(other.value, SHORT), names + more))
        if len(one.others) > MOST_ENTRIES:
            rows.append(("", "", "", f"{many(len(one.others) - MOST_ENTRIES, 'more value')}", ""))
    lines = table_lines(rows, width)
    if len(settings) > _MOST_SETTINGS:
        lines += wrap(f"{many(len(settings) - _MOST_SETTINGS, 'more setting')}: --json has all.", width, style="dim")
    return lines


def _figure(figure: FleetFigure, rows: Sequence[FleetRow], width: int) -> Lines:
    """Return a figure's title, the strip of all hosts, a strip for each host that differs, and what could be found."""
    odd = [row for row in rows if row.different]
    if figure.why == ALL_ZERO:
        return [Text(), Text(figure_name(figure.figure), "bold").append(f"  {ALL_ZERO}", "dim")]
    name = figure_name(figure.figure)
    fleet = rows[0].fleet if rows else 0.0
    lines: Lines = [Text(), Text(name, "bold").append(f"  others' median {_amount(figure.figure, fleet)}", "dim")]
    spans = {row.host: _span(row) for row in odd}
    every = [_Span(row.ratio, row.ratio or 0.0, row.ratio) for row in rows]
    axis = axis_of([*every, *spans.values()])
    name_width = min(max([len("all hosts"), *(len(row.host) for row in odd[:_MOST_ROWS])]), _NAME, width // 3)
    room = width - name_width - 30
    picture = min(room - (1 - room % 2), _MOST_STRIP) if room >= _LEAST_STRIP else _LEAST_STRIP
    blank = " " * (name_width + 2)
    lines.append(Text(blank, "dim").append(scale(axis, picture), "dim"))
    lines.append(Text(f"{'all hosts':<{name_width}}  ").append(_crowd(every, axis, picture), "cool"))
    for row in odd[:_MOST_ROWS]:
        lines.append(_row(row, spans[row.host], axis, name_width, picture))
    if len(odd) > _MOST_ROWS:
        lines += wrap(f"{many(len(odd) - _MOST_ROWS, 'more host')}: --json has all.", width, style="dim")
    return lines + wrap(_power(figure, rows, bool(odd)), width, style="dim")


def _row(row: FleetRow, span: _Span, axis: Axis, name_width: int, picture: int) -> Text:
    colour = "bad" if row.direction == "higher" else "good"
    line = Text(f"{shortened(row.host, name_width):<{name_width}}  ")
    for faint, signs in groupby(interval_picture(strip(span, axis), axis, picture), key=lambda sign: sign in " │┊"):
        line.append("".join(signs), "rule" if faint else colour)
    return line.append(f"  {_amount(row.figure, row.value):>9}  {ratio_text(row.ratio):>6}", f"bold {colour}")


def _span(row: FleetRow) -> _Span:
    return _Span(row.ratio, row.low / row.fleet if row.fleet else 1.0, row.high / row.fleet if row.fleet else None)


def _crowd(every: Sequence[_Span], axis: Axis, width: int) -> str:
    """Return where the hosts are on an axis: the higher the sign, the more hosts."""
    counts = Counter(round(axis.position(one.ratio) * (width - 1)) for one in every if one.ratio is not None)
    most = max(counts.values(), default=1)
    top = len(_HEIGHTS) - 1
    return "".join(
        _HEIGHTS[round((counts[at] - 1) / max(most - 1, 1) * top)] if counts[at] else " " for at in range(width)
    )


def _power(figure: FleetFigure, rows: Sequence[FleetRow], odd: bool) -> str:
    single = sum(1 for row in rows if row.runs < 2)
    said = f"{many(figure.tested, 'host')} tested"
    said += f", {many(single, 'host')} with one run: no test" if single else ""
    if figure.least_ratio is None:
        return f"{said}. {cleaned_sentence(figure.why)}"
    found = "" if odd else "No host differs. "
    from_on = f"A host is found from about {ratio_text(figure.least_ratio)} the others on"
    most = f"up to {many(figure.together, 'such host')} together" if figure.together > 1 else "if it is the only one"
    return f"{said}. {found}{from_on}, {most}."


def _amount(figure: str, value: float) -> str:
    return f"{nice_number(value)}/h" if figure.startswith(WATCH_STALLS) else amount(figure, value)
