"""``python -m tests.lab.matrix [NAME…] [--only PARTS] [--kills N] [--cuts N] [--write]``: the tool on every machine.

``--only whole,kills,cuts,measure`` runs some of the parts; what the other parts gave with the same code is kept.

On each of ``shapes.SHAPES`` (or those that are named) the product's own verbs apply all that status would improve, and
SMT, isolation and kernel threads where there are siblings, and give it back; then its agent is killed, the power is
cut, and it measures. The results lie in a JSON file in the cache, with all that was said. ``--write`` puts them into
``machines.json`` here, and makes of that the table in docs/safety.md; a later run goes on from there. A row is in the
table only where it was seen with the product's code as it stands now.

A failure is told in its cell, and does not stop the others. Exit code 1: a cell was not as it has to be.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jitter_workshop.practice import kernels
from jitter_workshop.practice.qemu import MachineError, MachineOptions, MachineTimeout, PowerLost
from tests.lab import guestroot, machine, watched
from tests.lab.conftest import CACHE
from tests.lab.machine import Machine
from tests.lab.shapes import SHAPES, Tuned
from tests.lab.test_lab_boot import settings

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "safety.md"
RECORD = Path(__file__).with_name("machines.json")
"""The source of the table: the rows as they were seen."""
BEGIN = "<!-- machines: python -m tests.lab.matrix --write -->"
END = "<!-- end of machines -->"
CODE = ("jitter_workshop", "native")
SEED = "jitter-workshop"
PARTS = ("whole", "kills", "cuts", "measure")
EXPLICIT = ("smt", "isolation", "kernel-threads")

VERB_S = 240.0
KILLS_S = 1500.0
CUT_S = 240.0
MEASURE_S = 240.0
GRUB = "update-grub"
"""The command that makes GRUB's menu. It may fail in a guest without a boot disk, so the table does not count it."""
Row = dict[str, Any]


# --- one machine


def facts() -> dict[str, object]:
    """(In the guest) what a reader of its files sees of a machine's shape."""
    import glob
    import os

    def text(path: str) -> str:
        try:
            with open(path) as file:
                return file.read().strip()
        except OSError:
            return ""

    cpu = "/sys/devices/system/cpu"
    policies = sorted(glob.glob(f"{cpu}/cpufreq/policy*"))
    with open("/proc/self/mounts") as mounts:
        groups = sorted({line.split()[2] for line in mounts if line.split()[2].startswith("cgroup")})
    return {
        "machine": os.uname().machine,
        "present": text(f"{cpu}/present"),
        "smt": text(f"{cpu}/smt/control"),
        "siblings": len({text(path) for path in glob.glob(f"{cpu}/cpu*/topology/thread_siblings_list")}),
        "packages": len({text(path) for path in glob.glob(f"{cpu}/cpu*/topology/physical_package_id")}),
        "nodes": len(glob.glob("/sys/devices/system/node/node[0-9]*")),
        "drivers": sorted({text(f"{policy}/scaling_driver") for policy in policies}),
        "domains": len(policies),
        "top_khz": sorted({text(f"{policy}/cpuinfo_max_freq") for policy in policies}),
        "clock": text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "groups": groups,
        "realtime": text("/sys/kernel/realtime"),
    }


def words_of(status: dict[str, Any], shape: Tuned, when: tuple[str, ...] = ("runtime",)) -> list[str]:
    """Return what is applied: all that status would improve and the tool can change, and SMT's neighbours by name."""
    words = [
        check["id"]
        for check in status["checks"]
        if check["state"] == "improve" and check["when"] in when and "apply" in (check["fix"] or "")
    ]
    if not shape.siblings:
        return words
    explicit = [word for word in EXPLICIT if word != "isolation" or shape.cgroup != "none"]
    return [*explicit, *(word for word in words if word not in explicit)]


def everything(lab: Machine, shape: Tuned) -> Row:
    """All that status would improve, applied and given back."""
    status = lab.workshop("status", "--cpus", shape.hot, "--json", timeout_s=VERB_S)
    row = apply_and_restore(lab, shape.hot, words_of(status.json(), shape))
    row["codes"]["status"] = status.code
    return row


def apply_and_restore(lab: Machine, hot: str, words: list[str]) -> Row:
    """``applied``, ``refused``, ``differs`` (lines) and the exit codes of each verb."""
    before = lab.watched_tree()
    started = time.monotonic()
    done = lab.workshop("apply", *words, "--cpus", hot, "--yes", "--json", timeout_s=VERB_S)
    apply_s = time.monotonic() - started
    row: Row = {"words": words, "codes": {"apply": done.code}, "apply_s": round(apply_s, 1)}
    row["apply_said"] = done.stderr[-2000:]
    said = json.loads(done.stdout) if done.stdout.strip() else {"applied": [], "refused": [], "skipped": []}
    row["applied"] = len(said["applied"])
    row["by_tunable"] = Counter(one["tunable"] for one in said["applied"])
    row["refused"] = [f"{one['path']}: {one['reason']}" for one in said["refused"]]
    row["skipped"] = said.get("skipped", [])
    back = lab.workshop("restore", "--json", timeout_s=VERB_S)
    given = json.loads(back.stdout) if back.stdout.strip() else {"left_alone": [back.stderr[-2000:]]}
    row["left_alone"] = given["left_alone"]
    row["differs"] = watched.differences(before, lab.watched_tree())
    again = lab.workshop("restore", "--json", timeout_s=VERB_S)
    found = json.loads(again.stdout) if again.stdout.strip() else {"restored": [again.stderr[-2000:]], "left_alone": []}
    row["second"] = {"restored": found["restored"], "left_alone": found["left_alone"]}
    row["codes"] |= {"restore": back.code, "again": again.code}
    return row


def faults(row: Row) -> list[str]:
    """Return what of an apply and its restore is not as it has to be, a line each."""
    codes, second = row["codes"], row["second"]
    wrong = [*row["differs"], *(f"left alone: {one}" for one in row["left_alone"])]
    wrong += [f"a second restore found {one}" for one in (*second["restored"], *second["left_alone"])]
    expected = 1 if row["refused"] else 0
    if codes["apply"] != expected or codes["restore"] or codes["again"] or not row["applied"]:
        wrong.append(f"{row['applied']} applied, exit codes {codes} {row['apply_said']}")
    idle = [word for word in EXPLICIT if word in row["words"] and not row["by_tunable"].get(word)]
    return wrong + [f"{word} had nothing to change, so it was not tried" for word in idle]


def kills(lab: Machine, shape: Tuned, words: list[str], number: int) -> Row:
    """The agent is killed at drawn moments of apply and of restore. ``moments``: one entry for each that was done."""
    argv = [lab.python, "-m", "tests.lab.killing", shape.hot, f"{number}:{SEED}", *words]
    started = time.monotonic()
    guest = lab.start(argv)
    guest.close_stdin()
    row: Row = {"asked": number}
    try:
        done = guest.wait(KILLS_S)
        if done.code:
            row["trouble"] = f"ended with {done.code}: {done.stderr[-1500:]}"
        else:
            row["unharmed"] = [one for one in json.loads(done.stdout)["wrong"] if one[0] == -1]
    except MachineTimeout:
        row["trouble"] = f"not done after {KILLS_S:.0f} s"
    row["moments"] = [json.loads(line) for line in guest.stderr.decode().splitlines() if line.startswith("{")]
    row["seconds"] = round(time.monotonic() - started, 1)
    return row


def bad(part: Row) -> list[str]:
    """Return what of kills or cuts is not as it has to be, a line each."""
    wrong = [f"unharmed: {[*lines, *left]}" for _, _, left, lines in part.get("unharmed", ())]
    for one in part.get("moments", ()):
        if one["wrong"] or one["left"]:
            wrong.append(f"{one['verb']} at {one['moment']}: {[*one['wrong'], *one['left']]}")
    if "trouble" in part:
        wrong.append(part["trouble"])
    return wrong


def cuts(lab: Machine, shape: Tuned, number: int) -> Row:
    """The power goes at drawn moments of apply and of restore; half of them fall on what is written to the disk."""
    lab.call(settings)
    status = lab.workshop("status", "--cpus", shape.hot, "--json", timeout_s=VERB_S).json()
    words = words_of(status, shape, ("runtime", "boot"))
    row: Row = {"asked": number, "words": words, "moments": []}
    killing = [lab.python, "-m", "tests.lab.killing", shape.hot]
    steps = lab.run([*killing, "steps", *words], check=True, timeout_s=CUT_S).json()
    row["steps"] = {verb: len(steps[verb]) for verb in ("apply", "restore")}
    lab.reboot()
    before = lab.watched_tree()
    for verb, moment in drawn_cuts(steps, number):
        told: Row = {"verb": verb, "moment": moment, "step": steps[verb][moment // 2]}
        row["moments"].append(told)
        try:
            lab.run([*killing, f"{verb}@{moment}", *words], check=True, timeout_s=CUT_S)
            told["cut"] = False
        except PowerLost:
            told["cut"] = True
            lab.boot()
        listed = lab.workshop("restore", "--list", "--json", timeout_s=VERB_S).json()
        told["stood"] = sorted({one["tunable"] for one in listed["active"]})
        back = lab.workshop("restore", "--json", timeout_s=VERB_S)
        told["left"] = [one for one in back.json()["left_alone"] if one.get("path") != GRUB]
        after = lab.watched_tree()
        told["wrong"] = watched.differences(before, after)
        if told["wrong"] or told["left"]:
            lab.workshop("restore", "--discard", "--json", timeout_s=VERB_S)
            before = lab.watched_tree()
    return row


def drawn_cuts(steps: dict[str, list[str]], number: int) -> Iterator[tuple[str, int]]:
    """Moments of apply and restore in turn; every other pair falls on a step that changes a file on the disk."""
    draw = random.Random(SEED)
    for n in range(number):
        verb = "restore" if n % 2 else "apply"
        names = steps[verb]
        lasting = [at for at, name in enumerate(names) if name.startswith(("replace", "overwrite", "run"))]
        step = draw.choice(lasting) if lasting and n % 4 < 2 else draw.randrange(len(names))
        yield verb, 2 * step + draw.randrange(2)


def cannot_measure(shape: Tuned) -> str:
    """Return why there is no measuring on such a machine, "" where there is."""
    return "" if shape.hardware.arch == "x86_64" else guestroot.cannot_measure(CACHE)


def measured(lab: Machine, shape: Tuned) -> Row:
    """Make a quick run: its seconds, exit code, and whether it is complete. The ring needs two CPUs; on one, ``spin``
    is measured."""
    started = time.monotonic()
    row: Row = {"workload": "ring" if shape.hardware.cpus > 1 else "spin"}
    words = ["--preset", "quick", "--workload", row["workload"], "--json"]
    try:
        done = lab.workshop("measure", *words, timeout_s=MEASURE_S)
        row |= {"code": done.code, "said": done.stderr[-1500:]}
        if done.stdout.strip():
            run = done.json()
            row |= {"complete": run["complete"], "blocks": len(run["blocks"]), "notes": run["notes"]}
    except MachineTimeout as late:
        row["trouble"] = f"not done after {MEASURE_S:.0f} s: {str(late)[-500:]}"
    return row | {"seconds": round(time.monotonic() - started, 1)}


def row_of(shape: Tuned, wanted: argparse.Namespace, known: Row) -> Row:
    """Run the wanted parts on one machine; a part that failed has its ``trouble``. Parts that are not wanted are taken
    from ``known``, the row of an earlier run, where it was made with the same code."""
    row: Row = {"name": shape.name, "at": datetime.now(UTC).isoformat(timespec="seconds"), **code_state()}
    if known.get("code") == row["code"]:
        row = known | row
    started = time.monotonic()

    @contextmanager
    def part(name: str) -> Iterator[Callable[[Row], None]]:
        began = time.monotonic()
        try:
            yield lambda told: row.update({name: told})
        except (MachineError, OSError, ValueError, KeyError, AssertionError) as error:
            row[name] = {"trouble": f"{type(error).__name__}: {str(error)[:2000]}"}
        print(f"  {shape.name}: {name} took {time.monotonic() - began:.0f} s", flush=True)

    with running(MachineOptions.of(shape)) as lab:
        row |= {"release": lab.release, "boot_s": round(time.monotonic() - started, 1), "facts": lab.call(facts)}
        if "whole" in wanted.only:
            with part("whole") as put:
                put(everything(lab, shape))
        words = row.get("whole", {}).get("words", [])
        if "kills" in wanted.only and words:
            # Leftovers of the first part must not count against the second.
            with part("kills") as put:
                lab.boot()
                put(kills(lab, shape, words, wanted.kills))
        if "measure" in wanted.only and (why := cannot_measure(shape)):
            row["measure"] = {"refused": f"not run: {why}"}
        elif "measure" in wanted.only:
            with part("measure") as put:
                lab.boot()
                put(measured(lab, shape))
    if "cuts" in wanted.only:
        with (
            part("cuts") as put,
            tempfile.TemporaryDirectory(prefix="jitter-matrix-") as scratch,
            running(MachineOptions.of(shape, Path(scratch) / "disk.img")) as lab,
        ):
            put(cuts(lab, shape, wanted.cuts))
    row["seconds"] = round(time.monotonic() - started, 1)
    return row


@contextmanager
def running(options: MachineOptions) -> Iterator[Machine]:
    """A booted machine that is ended whatever happens."""
    lab = machine.boot(options, CACHE)
    try:
        yield lab
    finally:
        with suppress(OSError):
            lab.close()


# --- the code that it was seen with


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=DOCUMENT.parent, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def code_state() -> dict[str, str]:
    """``commit``, and ``code``: what the product's own files are, so that a commit of documents changes nothing."""
    code = "+".join(git("rev-parse", f"HEAD:{folder}")[:12] for folder in CODE)
    return {"commit": git("rev-parse", "--short=12", "HEAD"), "code": code + ("+changed" if changed() else "")}


def changed() -> bool:
    """Return True if product files differ from what is committed."""
    return bool(git("status", "--porcelain", "--", *(f":/{folder}" for folder in CODE)))


# --- the table


def cells(row: Row) -> tuple[list[str], list[str]]:
    """The cells behind the machine's name, and what is wrong, a line each."""
    wrong: list[str] = []
    whole = row.get("whole", {"trouble": "not run"})
    said = [f"`{row.get('release', '?')}`"]
    if "trouble" in whole:
        said += ["—", "—", "failed"]
        wrong.append(whole["trouble"])
    else:
        wrong += faults(whole)
        said += [str(whole["applied"]), str(len(whole["refused"])), "**no**" if wrong else "yes"]
    for name in ("kills", "cuts"):
        said.append(_counted(row.get(name), name, wrong))
    said.append(_seconds(row.get("measure"), wrong))
    return said, wrong


def _counted(part: Row | None, name: str, wrong: list[str]) -> str:
    if part is None:
        return "not run"
    found = bad(part)
    wrong += [f"{name}: {line}" for line in found]
    if "asked" not in part:
        return "failed"
    good = sum(not (one["wrong"] or one["left"]) for one in part["moments"])
    text = f"{good} of {part['asked']}"
    return f"**{text}**" if found else text


def _seconds(part: Row | None, wrong: list[str]) -> str:
    if part is None:
        return "not run"
    if part.get("complete") and part.get("code") == 0:
        other = part.get("workload", "ring")
        return f"{part['seconds']:.0f}" + ("" if other == "ring" else f" ({other})")
    if "refused" in part:
        return str(part["refused"])
    wrong.append(f"measure: {part.get('trouble') or part.get('said')}")
    return f"**not done in {part['seconds']:.0f}**" if "seconds" in part else "failed"


def table(rows: dict[str, Row], code: str = "") -> str:
    """Make the table as Markdown, with what is wrong behind it, of the rows that were seen with ``code``: that of the
    product as it stands now where none is given."""
    code = code or code_state()["code"]
    fresh = {name: row for name, row in rows.items() if row["code"] == code and name in SHAPES}
    dates = sorted(row["at"][:10] for row in fresh.values()) or ["never"]
    trees = " and ".join(f"`{tree}` ({folder})" for folder, tree in zip(CODE, code.split("+"), strict=False))
    lines = [
        f"Seen {dates[0] if dates[0] == dates[-1] else f'{dates[0]} to {dates[-1]}'} with the git trees {trees}. "
        "Applied and refused count changes; identical: the watched tree, each thread's affinity, policy and control "
        "group included, after `restore`; kills and cuts: at how many drawn moments of apply and restore it was so all "
        "the same; measure: seconds of `measure --preset quick`.",
        "",
        "| machine | kernel | applied | refused | identical | kills | cuts | measure |",
        "|---|---|---|---|---|---|---|---|",
    ]
    told: list[str] = []
    for name, shape in SHAPES.items():
        title = f"{name}: {shape.sentence}"
        if name not in fresh:
            lines.append(f"| {title} | not run with this code | | | | | | |")
            continue
        said, wrong = cells(fresh[name])
        lines.append(f"| {' | '.join(_cell(one) for one in (title, *said))} |")
        told += [f"- {name}: {_cell(one)[:300]}" for one in wrong[:6]]
        if len(wrong) > 6:
            told.append(f"- {name}: and {len(wrong) - 6} more")
    return "\n".join([*lines, *([""] if told else []), *told]) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def known(cache: Path, record: Path = RECORD) -> dict[str, Row]:
    """Read the rows of the cache and of the record, the later one of each machine."""
    rows: dict[str, Row] = {}
    for path in (record, cache):
        found: dict[str, Row] = json.loads(path.read_text()) if path.exists() else {}
        rows |= {name: row for name, row in found.items() if name not in rows or row["at"] >= rows[name]["at"]}
    return rows


def write(rows: dict[str, Row], document: Path = DOCUMENT, record: Path = RECORD) -> None:
    """Put the table between its two marks, and what it is made of into the record."""
    text = document.read_text()
    head, found, rest = text.partition(BEGIN)
    _, ended, tail = rest.partition(END)
    if not found or not ended:
        raise SystemExit(f"{document} has no marks {BEGIN} and {END}")
    code = code_state()["code"]
    fresh = {name: row for name, row in rows.items() if row["code"] == code and name in SHAPES}
    record.write_text(json.dumps(fresh, indent=1) + "\n")
    document.write_text(f"{head}{BEGIN}\n{table(fresh)}{END}{tail}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.matrix", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"machines (default: all): {', '.join(SHAPES)}")
    parser.add_argument("--kills", type=int, default=20, metavar="N", help="moments at which the agent is killed")
    parser.add_argument("--cuts", type=int, default=8, metavar="N", help="moments at which the power is cut")
    parser.add_argument(
        "--only", type=lambda text: text.split(","), default=PARTS, metavar="PARTS", help=f"some of {','.join(PARTS)}"
    )
    parser.add_argument("--write", action="store_true", help="write the table to docs/safety.md")
    parser.add_argument("--show", action="store_true", help="run nothing, show the table of what is known")
    parser.add_argument("--json", type=Path, default=CACHE / "matrix.json", metavar="FILE", help="where results lie")
    wanted = parser.parse_args()
    unknown = set(wanted.names) - SHAPES.keys()
    if unknown:
        parser.error(f"no such machine: {', '.join(sorted(unknown))}")
    if strange := set(wanted.only) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(strange))}")
    rows = known(wanted.json)
    failed = False
    for name in () if wanted.show else wanted.names or SHAPES:
        print(f"{name}: {SHAPES[name].sentence}", flush=True)
        try:
            rows[name] = row_of(SHAPES[name], wanted, rows.get(name, {}))
        except (MachineError, kernels.NotHere, OSError) as error:
            at = datetime.now(UTC).isoformat(timespec="seconds")
            rows[name] = {"name": name, "at": at, **code_state(), "whole": {"trouble": str(error)[:2000]}}
        wanted.json.parent.mkdir(parents=True, exist_ok=True)
        wanted.json.write_text(json.dumps(rows, indent=1))
        said, wrong = cells(rows[name])
        print(f"  {' | '.join(said)}", *(f"    {line[:400]}" for line in wrong[:8]), sep="\n", flush=True)
        failed = failed or bool(wrong)
    if wanted.write:
        write(rows)
    elif wanted.show:
        print(table(rows))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
