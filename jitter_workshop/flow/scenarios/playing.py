"""Play a scenario in a practice machine: plant the fault, reboot, check, and record the solution.

Files from the machine are untrusted, because the learner can write them. They are checked strictly, and boot parameters
have a maximum length.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jitter_workshop.errors import SessionError
from jitter_workshop.flow.scenarios.checking import INSIDE, PRELUDE, shell_variables
from jitter_workshop.model.record import FORMAT_VERSION
from jitter_workshop.model.scenario import Outcome, Requirement, Scenario
from jitter_workshop.model.text import PARAGRAPH, SENTENCE
from jitter_workshop.paths import assets
from jitter_workshop.practice.machine import Machine
from jitter_workshop.practice.qemu import KEPT, MachineError, MachineTimeout, PowerLost
from jitter_workshop.session.files import read_json, write_json

NO_SCENARIO = "this machine has no scenario"
STATE = f"{INSIDE}/scenario.json"
SOLVED = "solved.json"
BOOT = "boot-with"
"""The name of the file in the kept folder that holds the parameters for the next boot."""
MOST_APPEND = 500
MOST_SOLVED = 1000
PLANT_TIMEOUT_S = 120.0
CHECK_TIMEOUT_S = 240.0
_LAST_LINES = 8
"""The number of lines at the end of the console that are shown if a kernel does not boot."""


@dataclass(frozen=True)
class Playing:
    """Hold a practice machine and the scenario that is planted in it. ``values``: the values drawn for the scenario.
    ``kept``: a folder of this host in which the machine can write."""

    machine: Machine
    scenario: Scenario
    values: Mapping[str, str]
    seed: int
    kept: Path

    def begin(self) -> None:
        """Plant the scenario in the booted machine, and install the shell commands of scenarios there. Raise
        MachineError on failure."""
        (self.kept / BOOT).unlink(missing_ok=True)
        state = json.dumps(as_state(self.scenario, self.values, self.seed))
        setup = assets() / "practice" / "scenario.sh"
        self._write(STATE, state.encode())
        self._write(f"{INSIDE}/setup.sh", setup.read_bytes())
        places = {"PYTHON": self.machine.python, "INSIDE": INSIDE, "KEPT": KEPT}
        self._shell("commands", places)
        if self.scenario.plant:
            self._shell(self.scenario.plant, places)

    def boot_anew(self, tell: Callable[[str], None]) -> bool:
        """Boot the machine again after the learner has switched it off. If the learner left no valid boot parameters in
        ``kept``, do not boot the machine, and return False. If the kernel does not boot with these parameters, the
        machine boots with its previous parameters. ``tell``: receives lines about the boot."""
        wanted = self._parameters()
        if wanted is None:
            return False
        tell(f"The machine boots with: {wanted or 'no parameters'}")
        before = self.machine.options.append
        try:
            self.machine.boot(wanted)
        except (MachineTimeout, PowerLost):
            tell("The kernel did not boot with these parameters. These are its last lines:")
            tell("\n".join(f"  {line}" for line in self.machine.console().splitlines()[-_LAST_LINES:]))
            tell("The machine boots with its earlier parameters. Find the error in the lines above, and try again.")
            self.machine.boot(before)
        self.begin()
        return True

    def check(self) -> list[Outcome]:
        """Let the machine check itself, as the learner's command ``check`` does. Raise MachineError on failure."""
        argv = [self.machine.python, "-m", "jitter_workshop", "practice", "check", "--json"]
        done = self.machine.run(argv, timeout_s=CHECK_TIMEOUT_S)
        try:
            said = json.loads(done.stdout)
            return [Outcome(str(one["says"]), one["met"] is True, str(one["found"])) for one in said["outcomes"]]
        except (ValueError, KeyError, TypeError):
            raise MachineError(f"the check gave no result: {(done.stdout + done.stderr)[-SENTENCE:]}") from None

    def solve(self, tell: Callable[[str], None]) -> None:
        """Run the scenario's solution. If the solution switches the machine off, boot the machine again. Raise
        MachineError if the solution fails. ``tell``: receives lines about the boot."""
        try:
            self._shell(self.scenario.solution)
        except PowerLost:
            if not self.boot_anew(tell):
                raise

    def _shell(self, program: str, more: Mapping[str, str] | None = None) -> None:
        env = {**shell_variables(self.values), **(more or {})}
        done = self.machine.run(["sh", "-ec", PRELUDE + program], env=env, timeout_s=PLANT_TIMEOUT_S)
        if done.code != 0:
            said = done.stderr[-PARAGRAPH:]
            raise MachineError(f"a program of the scenario {self.scenario.id} failed with code {done.code}: {said}")

    def _write(self, path: str, content: bytes) -> None:
        argv = ["sh", "-ec", 'mkdir -p "${0%/*}" && cat >"$0"', path]
        self.machine.run(argv, stdin=content, check=True)

    def _parameters(self) -> str | None:
        """Return the boot parameters that the learner wrote for the next boot. Return None if there are none, or if
        they are too long or not printable."""
        place = self.kept / BOOT
        try:
            with place.open("rb") as file:
                text = file.read(MOST_APPEND + 1).decode("ascii", "replace").strip()
            place.unlink()
        except OSError:
            return None
        return text if len(text) <= MOST_APPEND and text.isprintable() else None


def as_state(scenario: Scenario, values: Mapping[str, str], seed: int) -> dict[str, Any]:
    """Return the scenario, without its solution, as the JSON object that is written into the machine."""
    told = {field.name: getattr(scenario, field.name) for field in dataclasses.fields(scenario)}
    told["requirements"] = [dataclasses.asdict(one) for one in scenario.requirements]
    # The solution stays outside.
    told["solution"] = ""
    return {"format_version": FORMAT_VERSION, "scenario": told, "values": dict(values), "seed": seed, "hints": 0}


@dataclass
class PlantedScenario:
    """Hold the scenario of the practice machine in which this process runs. ``hints``: how many hints the learner has
    read."""

    scenario: Scenario
    values: dict[str, str]
    seed: int
    hints: int

    @classmethod
    def open(cls, path: str = STATE) -> PlantedScenario:
        """Read and return the scenario of this practice machine. Raise SessionError if this host is not a machine with
        a scenario."""
        try:
            said = read_json(Path(path))
            told = dict(said["scenario"])
            told["requirements"] = tuple(Requirement(**one) for one in told["requirements"])
            told["hints"] = tuple(told["hints"])
            return cls(Scenario(**told), dict(said["values"]), int(said["seed"]), int(said["hints"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SessionError(
                NO_SCENARIO, "outside the practice machine, 'jitter-workshop practice scenarios' lists the scenarios"
            ) from error

    def next_hint(self, path: str = STATE) -> str:
        """Return the next hint, and record that the learner has read it. After the last hint, return the last hint
        again."""
        self.hints = min(self.hints + 1, len(self.scenario.hints))
        write_json(Path(path), {**as_state(self.scenario, self.values, self.seed), "hints": self.hints})
        return self.scenario.hints[self.hints - 1]

    def note_solved(self, kept: Path) -> None:
        """Record in the folder ``kept`` that the scenario is solved."""
        entry = {"scenario": self.scenario.id, "seed": self.seed, "at": time.time(), "hints": self.hints}
        before = [dataclasses.asdict(one) for one in solved_in(kept)]
        write_json(kept / SOLVED, {"format_version": FORMAT_VERSION, "solved": [*before, entry][-MOST_SOLVED:]})


@dataclass(frozen=True)
class Solved:
    """Hold one solved scenario.

    - ``seed``: the random seed of the scenario's values.
    - ``at``: the time of the solution, in seconds since the epoch.
    - ``hints``: how many hints the learner has read.
    """

    scenario: str
    seed: int
    at: float
    hints: int


def solved_in(kept: Path) -> list[Solved]:
    """Return the solved scenarios that the folder ``kept`` records, the oldest first. Return [] if there are none, or
    if the record is damaged."""
    found = []
    try:
        said = read_json(kept / SOLVED)["solved"]
        for one in said[-MOST_SOLVED:]:
            words = (one["scenario"], one["seed"], one["at"], one["hints"])
            if isinstance(words[0], str) and all(type(word) in (int, float) for word in words[1:]):
                found.append(Solved(words[0], int(words[1]), float(words[2]), int(words[3])))
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return found


def inside_kept() -> Path:
    """Return the path of the folder that the practice machine shares with the host. The path is the one inside the
    machine."""
    return Path(os.environ.get("KEPT", KEPT))
