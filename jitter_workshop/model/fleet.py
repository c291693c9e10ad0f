"""Define the comparison of many hosts: what ``fleet compare --json`` prints.

Names of hosts and files, and values of settings, come from outside. They are cleaned where they are read."""

from __future__ import annotations

from typing import Literal

from jitter_workshop.model.record import FORMAT_VERSION as FORMAT_VERSION
from jitter_workshop.model.record import dataclass, field

FDR = 0.05
"""The default bound of the false discovery rate: the expected share of false claims among all claims on figures."""
HostDirection = Literal["higher", "lower", ""]


@dataclass(frozen=True, slots=True)
class FleetHost:
    """Hold one host of a comparison. ``runs``: number of its runs and watches that are compared. ``settings``: True if
    its settings are known. ``different``: True if any setting or figure of the host differs from the rest."""

    host: str
    runs: int
    settings: bool
    different: bool


@dataclass(frozen=True, slots=True)
class OtherValue:
    """Hold a value of a setting that is not the commonest one, and the hosts that have it."""

    value: str
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FleetSetting:
    """Hold a setting or a fact that is not the same on all hosts.

    - ``commonest``: the value of more than half of the hosts; None if no value is so common. Then ``others`` has all
      values.
    - ``hosts``: number of hosts with the commonest value. ``known``: number of hosts whose value is known.
    """

    setting: str
    title: str
    commonest: str | None
    hosts: int
    known: int
    others: tuple[OtherValue, ...]


@dataclass(frozen=True, slots=True)
class FleetRow:
    """Hold a figure of one host beside the same figure of all other hosts.

    - ``figure``: p50, p99 and so on in ns, ``stalls_per_second_over_100000_ns``, ``stolen_ns_per_second``, or
      ``watch_stalls_per_hour_over_20000_ns``.
    - ``value``: the median of the host's runs. ``low``, ``high``: its lowest and its highest run.
    - ``fleet``: the median of the other hosts' values.
    - ``ratio``: value/fleet; None if ``fleet`` is 0.
    - ``p``: the p value of this row, ``p_adjusted``: the same adjusted for all rows. Both are None without a test.
    - ``different``: None without a test; ``why`` then has the reason.
    """

    figure: str
    host: str
    value: float
    low: float
    high: float
    different: bool | None
    direction: HostDirection
    runs: int
    fleet: float
    ratio: float | None
    p: float | None
    p_adjusted: float | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class FleetFigure:
    """Hold what the tests of one figure could find.

    - ``hosts``: number of hosts with the figure. ``tested``: number of hosts with a test.
    - ``least_ratio``: about how many times a single host must be above or below the others to be found; None if it
      could not be found at all, and ``why`` then has the reason.
    - ``together``: about how many hosts may differ in the same way and still be found. Many such hosts hide each other;
      more runs of each host help.
    """

    figure: str
    hosts: int
    tested: int
    least_ratio: float | None
    together: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """Hold a file that is not compared, and the reason."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class FleetComparison:
    """Hold the comparison of many hosts.

    - ``fdr``: the bound of the false discovery rate over all rows.
    - ``mark``: what all compared answers are: "" real hosts, ``recorded``, ``emulated`` or ``guest``.
    - ``settings``: settings that differ between hosts. ``settings_alike``: number of those that do not.
    - ``rows``: for each figure and host; the rows that differ come first.
    - ``way``: how the compared runs were measured. ``notes``: field → the reason why it is empty.
    """

    format_version: int
    hosts: tuple[FleetHost, ...]
    rows: tuple[FleetRow, ...]
    figures: tuple[FleetFigure, ...]
    settings: tuple[FleetSetting, ...]
    settings_alike: int
    fdr: float
    mark: str
    way: str
    left_out: tuple[SkippedFile, ...]
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def alike(self) -> bool:
        """Return True if no setting differs and no figure of a host was found to differ."""
        return not self.settings and not any(row.different for row in self.rows)
