"""Make the byte code of tests once, by all CPUs: ``python -m tests.rewritten FOLDER…``.

Without it each worker of a ring compiles all tests for itself, at the same time as the others: in a new checkout that
is most of what a worker does before its first test. Pytest rewrites the assertions of tests and keeps what it made;
its own functions do so here, too. They are not public, so a unit test asks pytest whether it takes what they wrote.
"""

from __future__ import annotations

import compileall
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

from _pytest.assertion import rewrite
from _pytest.config import Config, _prepareconfig


@cache
def _config() -> Config:
    """Return a configuration that loads no plugin and no conftest: those import the product."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return _prepareconfig(["--noconftest", "-c", os.devnull])


def _keep(source: Path) -> None:
    """Keep the byte code of a file that is new or has changed."""
    if not source.name.startswith("test_") and source.name != "conftest.py":
        compileall.compile_file(source, quiet=2)
        return
    kept = rewrite.get_cache_dir(source) / f"{source.stem}{rewrite.PYC_TAIL}"
    if rewrite._read_pyc(source, kept) is None:
        kept.parent.mkdir(exist_ok=True)
        state, code = rewrite._rewrite_test(source, _config())
        rewrite._write_pyc(_config().stash[rewrite.assertstate_key], code, state, kept)


def keep(*folders: Path) -> None:
    """Keep the byte code of the files in these folders. A test that cannot be compiled raises ``SyntaxError``."""
    files = [path.absolute() for folder in folders for path in folder.glob("*.py")]
    with ProcessPoolExecutor() as processes:
        list(processes.map(_keep, sorted(files, key=lambda path: -path.stat().st_size)))


if __name__ == "__main__":
    keep(*map(Path, sys.argv[1:]))
