"""A booted machine as tests use it: that of ``practice``, and functions and files of the guest, power cuts, and what
must be as before."""

from __future__ import annotations

import contextlib
import inspect
import io
import shutil
import tarfile
import tempfile
import textwrap
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from jitter_workshop.practice import machine
from jitter_workshop.practice.machine import RUN_TIMEOUT_S, Done, Guest
from jitter_workshop.practice.qemu import MachineError, MachineOptions, MachineStalled, MachineTimeout
from tests.lab import guestroot, watched

__all__ = ["PROJECT", "RUN_TIMEOUT_S", "Done", "Guest", "Machine", "boot"]

PROJECT = "/srv/jitter-workshop"
POWER_CUT = Path(__file__).with_name("power-cut")

P = ParamSpec("P")
T = TypeVar("T")


class Machine(machine.Machine):
    """One lab machine. QEMU always ends with ``close``, or with the test run."""

    def __init__(self, options: MachineOptions, cache: Path) -> None:
        # QEMU saves no machine with an nvme, so those of practice have none.
        devices = ["-drive", "driver=null-co,size=64M,if=none,id=fast", "-device", "nvme,drive=fast,serial=lab"]
        devices += [] if options.foreign else ["-device", "isa-debug-exit,iobase=0xf4"]
        own = replace(options, hostname="lab", extra=(POWER_CUT,), devices=tuple(devices))
        if options.foreign:
            own = replace(own, programs=guestroot.find("arm64", cache).programs(cache))
        super().__init__(own, cache, Path(tempfile.mkdtemp(prefix="jitter-lab-")), cwd=PROJECT)

    def started_again(self, late: Exception) -> None:
        warnings.warn(f"the lab machine is started again: {late}", stacklevel=3)

    def close(self) -> None:
        super().close()
        shutil.rmtree(self.work, ignore_errors=True)

    def power_cut(self) -> None:
        """Take the power away now. Data that the guest had not synced to its disk is gone; data that it had synced is
        there."""
        self._off()

    def workshop(self, *arguments: str, user: str = "root", check: bool = False, **options: Any) -> Done:
        """``jitter-workshop ARGUMENTS`` in the guest."""
        return self.run([self.python, "-m", "jitter_workshop", *arguments], user=user, check=check, **options)

    def call(self, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Run a function in a fork inside the guest: self-contained (imports inside), arguments and result as JSON."""
        if named:
            raise TypeError("a function in the guest takes positional arguments only")
        source = textwrap.dedent(inspect.getsource(function))
        result: T = self.call_source(source, function.__name__, *arguments)
        return result

    def call_source(self, source: str, name: str, *arguments: Any, timeout_s: float = RUN_TIMEOUT_S) -> Any:
        """Do the same for a whole module's source, of which ``name`` is called; an OSError there is an OSError here.

        The guest ends a call after ``timeout_s`` by an alarm of its own: one that stays silent longer stands still.
        """
        ident = self._next()
        self.tell({"id": ident, "call": source, "name": name, "arguments": arguments, "seconds": timeout_s})
        try:
            self.pump(lambda: ident in self._answers, timeout_s + 10, f"{name}() in the guest")
        except MachineTimeout as silent:
            raise MachineStalled(str(silent)) from None
        return self._raise(ident)

    def read(self, path: str) -> str:
        """A file's text, stripped."""
        return self.call(_read, path)

    def write(self, path: str, text: str) -> None:
        """Write to a kernel file or another file, in one write(2)."""
        self.call(_write, path, text)

    def list_dir(self, path: str) -> list[str]:
        return self.call(_list_dir, path)

    def copy_out(self, source: str, target: Path) -> None:
        """Copy a tree of the guest to a folder of this host."""
        guest = self.start(["tar", "-C", source, "-cf", "-", "."])
        done = guest.wait()
        if done.code:
            raise MachineError(f"{source} cannot be copied: {done.stderr}")
        with tarfile.open(fileobj=io.BytesIO(guest.stdout)) as archive:
            # The first releases of Python 3.11 have no filters yet; the archive is our own guest's.
            archive.extractall(target, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))

    # --- what must be as before

    def watched_tree(self) -> dict[str, str]:
        """All that the tool may write, by path (see ``watched``)."""
        tree: dict[str, str] = self.call_source(Path(watched.__file__).read_text(), "watched_tree")
        return tree

    @contextlib.contextmanager
    def unchanged(self) -> Iterator[dict[str, str]]:
        """Fail when the watched tree at the end differs from that at the start."""
        before = self.watched_tree()
        yield before
        differences = watched.differences(before, self.watched_tree())
        assert not differences, "not as before:\n" + "\n".join(differences)


def boot(options: MachineOptions, cache: Path) -> Machine:
    """A booted machine; one that fails to boot leaves nothing behind."""
    return machine.booted(Machine(options, cache))


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().strip()


def _write(path: str, text: str) -> None:
    import os

    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, text.encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
    finally:
        os.close(descriptor)


def _list_dir(path: str) -> list[str]:
    import os

    return sorted(os.listdir(path))
