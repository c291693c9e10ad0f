"""``python -m tests.mutants [ROOM…] [-k WORD] [-j N]``: put each fault into a copy of the product and run its room's
unit tests.

Exit code 1: a mutant survived that has no reason to, or one with a reason was found after all.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

from tests.mutants import PACKAGE, REPOSITORY, Mutant, mutants_of, rooms, unit_tests

TEST_S = 120
"""More than six times what the tests of a room may take: a mutant that hangs them is found, too."""

_COPIED = (PACKAGE, "tests")
_LINKED = ("assets", "docs", "lessons", "native", "scripts", "pyproject.toml", "README.md", "CHANGELOG.md")


@contextmanager
def copy() -> Iterator[Path]:
    """Make a copy of the product and its tests in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="jitter-mutants-") as folder:
        top = Path(folder)
        for name in _COPIED:
            shutil.copytree(REPOSITORY / name, top / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in _LINKED:
            (top / name).symlink_to(REPOSITORY / name)
        yield top


def run(top: Path, tests: list[str]) -> subprocess.CompletedProcess[str]:
    """Run tests against the copy, up to the first that fails. Raise TimeoutExpired after ``TEST_S``."""
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--no-header", "--tb=line"]
    # Byte code goes by a file's time in seconds and its size: two faults may have both in common.
    env = os.environ | {"PYTHONPATH": str(top), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", *options, *tests]
    return subprocess.run(command, cwd=top, env=env, capture_output=True, text=True, timeout=TEST_S, check=False)


def is_found(top: Path, mutant: Mutant) -> bool:
    """Put the fault in, run the room's tests, and take it out again."""
    path = top / PACKAGE / mutant.file
    whole = path.read_text()
    path.write_text(mutant.applied(whole))
    try:
        done = run(top, unit_tests(mutant.room, mutant.file))
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_text(whole)
    if done.returncode not in (0, 1, 2):
        raise SystemExit(
            f"{mutant.name}: pytest ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-500:]}"
        )
    return done.returncode != 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Faults that the tests have to find.")
    parser.add_argument("rooms", metavar="ROOM", nargs="*", help=f"rooms (default: all): {', '.join(rooms())}")
    parser.add_argument("-k", metavar="WORD", default="", help="only mutants with this word in their name")
    parser.add_argument("-j", metavar="N", type=int, default=os.cpu_count() or 1, help="as many at a time")
    wanted = parser.parse_args()
    if strange := set(wanted.rooms) - set(rooms()):
        parser.error(f"no such room: {', '.join(sorted(strange))}")
    chosen = [one for room in wanted.rooms or rooms() for one in mutants_of(room) if wanted.k in one.name]
    if not chosen:
        parser.error(f"no mutant there has {wanted.k!r} in its name")
    started = time.monotonic()
    survivors: list[Mutant] = []
    wrong = 0
    with copy() as first, ThreadPoolExecutor(wanted.j) as pool:
        for room in dict.fromkeys(one.room for one in chosen):
            began = time.monotonic()
            try:
                done = run(first, unit_tests(room))
            except subprocess.TimeoutExpired:
                raise SystemExit(f"{room}: its tests take longer than {TEST_S} s without any mutant") from None
            if done.returncode:
                raise SystemExit(f"{room}: its tests fail without any mutant:\n{done.stdout[-3000:]}")
            print(f"{room}: unit tests pass in {time.monotonic() - began:.1f} s", flush=True)
        free: SimpleQueue[Path] = SimpleQueue()
        free.put(first)
        more = [copy() for _ in range(wanted.j - 1)]
        for one in more:
            free.put(one.__enter__())

        def tried(mutant: Mutant) -> bool:
            top = free.get()
            try:
                return is_found(top, mutant)
            finally:
                free.put(top)

        try:
            for mutant, found in zip(chosen, pool.map(tried, chosen), strict=True):
                word = "found" if found else "SURVIVED" if not mutant.survives else "survives"
                print(f"{word:9}{mutant.name} ({mutant.survives or mutant.why})", flush=True)
                survivors += [] if found else [mutant]
                wrong += found == bool(mutant.survives)
        finally:
            for one in more:
                one.__exit__(None, None, None)
    took = time.monotonic() - started
    print(f"{len(chosen)} mutants, {len(chosen) - len(survivors)} found, {len(survivors)} survived, {took:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
