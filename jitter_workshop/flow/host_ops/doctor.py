"""Find what this host lacks for the tool's functions, and the commands that add it. Nothing is written. The values of
settings are judged by ``status``."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal

from jitter_workshop import paths
from jitter_workshop.agent.client import rights
from jitter_workshop.agent.tracing import instances, own_view
from jitter_workshop.bench.protocol import BUILD_IT
from jitter_workshop.errors import HostError, WorkshopError
from jitter_workshop.flow.host_ops import practising
from jitter_workshop.flow.host_ops.host_status import read_checks
from jitter_workshop.flow.host_ops.hotcpus import choose_hot
from jitter_workshop.host.boot.bootloader import read_families
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.host.kernel.hypervisor import read_hypervisor
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.cgroup import read_cgroup
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.status import Assessment
from jitter_workshop.model.text import many
from jitter_workshop.practice import kernels, room

DoctorState = Literal["ok", "missing", "not_here"]

DISTRIBUTION = "jitter-workshop"
MEASURING = {"cffi": "_cffi_backend", "hdrhistogram": "hdrh", "psutil": "psutil"}
"""Package → its module, for the packages without which nothing is measured."""
SHOWING = {"textual": "textual", "rich": "rich", "plotext": "plotext", "pillow": "PIL"}
"""Package → its module, for the packages of the full screen, of curves and of pictures."""
SERVING = {"textual-serve": "textual_serve"}
TRACKS = {"perfetto": "perfetto"}
SSH_KEYGEN = {"debian": "openssh-client", "fedora": "openssh-clients"}
"""Family of distributions → the package of ssh-keygen."""
INSTALLERS = {"debian": "sudo apt install", "fedora": "sudo dnf install"}
"""Family of distributions → the command that installs a package."""
BY_SCRIPT = "'jitter-workshop plan --sh' prints a script for an administrator"
_CORE_S = 30.0


@dataclass(frozen=True, slots=True)
class Need:
    """Hold one thing that the tool needs.

    - ``id``: its name.
    - ``purpose``: what the tool does with it, as a part of a sentence.
    - ``state``: ``ok``; ``missing`` if this host could have it; ``not_here`` if this host cannot have it.
    - ``found``: what this host has, or what is missing.
    - ``mend``: a command or advice on how to add it; "" if there is nothing to do.
    - ``measuring``: True if nothing can be measured without it.
    """

    id: str
    purpose: str
    state: DoctorState
    found: str
    mend: str = ""
    measuring: bool = False


@dataclass(frozen=True, slots=True)
class HostCheck:
    """Hold all things that the tool needs on one host. ``python``: the version and the path of the interpreter.
    ``families``: see ``read_families``."""

    python: str
    families: tuple[str, ...]
    needs: tuple[Need, ...]

    @property
    def can_measure(self) -> bool:
        """Return True if this host has everything that a measurement needs."""
        return not [need for need in self.needs if need.measuring and need.state != "ok"]


def examine(root: HostRoot) -> HostCheck:
    """Return all things that the tool needs, and what this host has of them. ``root``: the live host; tests give an
    artificial one."""
    families = read_families(root)
    needs = (
        _packages("packages", "measure", MEASURING, measuring=True),
        _core(),
        _cpus(root),
        _state_folder(),
        _packages("screen", "show the workshop, draw curves and pictures", SHOWING),
        _rights(),
        _trace(root),
        _setting(root, "cgroup", "isolate CPUs while the host runs", "isolation", lambda _: _groups(root)),
        _setting(root, "cpufreq", "set the frequency of the CPUs", "governor", lambda one: f"governor {one.value}"),
        _practice(root, families),
        _kernel(),
        _memory(),
        _packages("browser", "show the workshop in a browser (serve)", SERVING),
        _packages("perfetto", "write traces for ui.perfetto.dev", TRACKS),
        _ssh_keygen(families),
    )
    version = sys.version_info
    python = f"{version.major}.{version.minor}.{version.micro} ({sys.executable})"
    return HostCheck(python, families, needs)


def _packages(ident: str, purpose: str, modules: Mapping[str, str], *, measuring: bool = False) -> Need:
    missing = [name for name, module in modules.items() if importlib.util.find_spec(module) is None]
    if not missing:
        has = f"Python {'packages' if len(modules) > 1 else 'package'} {', '.join(modules)}"
        return Need(ident, purpose, "ok", has, measuring=measuring)
    wanted = " ".join(shlex.quote(one) for one in _requirements(missing))
    found = f"this Python does not have {', '.join(missing)}"
    # An environment that uv has made has no pip.
    pip = f"uv pip install --python {sys.executable}"
    if importlib.util.find_spec("pip") is not None:
        pip = f"{sys.executable} -m pip install"
    return Need(ident, purpose, "missing", found, f"{pip} {wanted}", measuring)


def _requirements(names: Iterable[str]) -> list[str]:
    """Return packages with the versions that this tool requires, such as ``rich<16,>=15``. Return the names alone if
    the installation has no metadata."""
    required: list[str] = []
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        required = [line.partition(";")[0].strip() for line in importlib.metadata.requires(DISTRIBUTION) or ()]
    by_name = {re.split(r"[^\w.-]", line)[0].lower(): line for line in reversed(required)}
    return [by_name.get(name, name) for name in names]


def _core() -> Need:
    """Return the need for the native core. This process must not load the core, so another process loads it."""
    words = [sys.executable, "-c", "import jitter_workshop.bench._native as core; print(core.__file__)"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    purpose = "measure"
    try:
        done = subprocess.run(
            words, env=environment, capture_output=True, text=True, errors="replace", timeout=_CORE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Need("core", purpose, "missing", f"the native core cannot be tested: {error}", BUILD_IT, True)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        return Need("core", purpose, "missing", f"the native core does not load: {said}", BUILD_IT, True)
    return Need("core", purpose, "ok", f"native core {done.stdout.strip()}", measuring=True)


def _cpus(root: HostRoot) -> Need:
    purpose = "measure"
    try:
        machine = read_topology(root)
        hot = choose_hot(root, None, machine)
    except WorkshopError as error:
        return Need("cpus", purpose, "not_here", error.message, error.advice, True)
    usable = machine.allowed or machine.online
    found = f"{many(len(usable), 'CPU')} for this process; hot CPUs: {hot.cpus}"
    if len(usable) == 1:
        found += ": both threads of the ring share it, and nothing can be moved away"
    return Need("cpus", purpose, "ok", found, measuring=True)


def _state_folder() -> Need:
    """Return the need for the folder of sessions, which is only tested and not made."""
    folder = paths.sessions_dir()
    place = next(one for one in (folder, *folder.parents) if one.exists())
    if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
        return Need("sessions", "keep runs", "ok", f"sessions are kept in {folder}", measuring=True)
    mend = "export XDG_STATE_HOME=DIR, a folder that you may write"
    return Need("sessions", "keep runs", "missing", f"{folder} cannot be made: {place} cannot be written", mend, True)


def _rights() -> Need:
    purpose, has = "change settings (apply), record the kernel's trace", rights()
    if has == "none":
        return Need(
            "rights",
            purpose,
            "missing",
            "this user is not root, and has no sudo",
            f"run this program as root; {BY_SCRIPT}",
        )
    return Need("rights", purpose, "ok", "root" if has == "root" else "with sudo, which may ask for a password")


def _trace(root: HostRoot) -> Need:
    purpose = "name the cause of each stall (--evidence, explain, watch)"

    def told(state: DoctorState, found: str, mend: str = "") -> Need:
        return Need("trace", purpose, state, found, mend)

    may = rights() != "none"
    try:
        folder = instances.trace_folder(root)
    except HostError as error:
        mend = error.advice
        if instances.hidden(root):
            found = "the kernel's trace is mounted, and only root may read it"
            return (
                told("ok", f"{found}: a helper with root's rights reads the trace")
                if may
                else told("missing", found, "run this program as root")
            )
        if not mend:
            return told("not_here", error.message)
        if not may:
            return told("missing", error.message, f"as root: {mend}")
        if not Path(paths.CLASS_FILE).exists() and own_view.can_be_had(root):
            return told(
                "ok", "the kernel's trace is not mounted; a helper mounts the trace for itself while it records"
            )
        return told("missing", error.message, mend if rights() == "root" else f"sudo {mend}")
    if not may:
        return told(
            "missing", f"the kernel's trace is in {folder}, and only root may record it", "run this program as root"
        )
    return told("ok", f"the kernel's trace is in {folder}")


def _setting(root: HostRoot, ident: str, purpose: str, tunable: str, found: Callable[[Assessment], str]) -> Need:
    """Return a need that is met if this host has the tunable.

    The check that ``status`` makes for this tunable decides if the need is met. ``found``: a function that takes the
    check's result and returns a description of what this host has.
    """
    try:
        (check,) = read_checks(root.root, [tunable]).checks
    except WorkshopError as error:
        return Need(ident, purpose, "not_here", error.message)
    if check.state == "unavailable":
        return Need(ident, purpose, "not_here", check.reason)
    return Need(ident, purpose, "ok", found(check))


def _groups(root: HostRoot) -> str:
    version = read_cgroup(root).version
    return f"control groups of version {version}" if version else "control groups"


def _practice(root: HostRoot, families: tuple[str, ...]) -> Need:
    purpose = "run a practice machine"
    refusal = practising.HERE if read_hypervisor(root).accelerator else kernels.other_processor()
    if refusal is not None:
        return Need("qemu", purpose, "not_here", refusal)
    missing = kernels.missing_tools()
    if not missing:
        return Need("qemu", purpose, "ok", ", ".join(kernels.TOOLS))
    packages = {family: " ".join(kernels.TOOLS[name] for name in missing) for family in ("debian",)}
    return Need(
        "qemu", purpose, "missing", f"{', '.join(missing)} not installed", _install(families, packages, missing)
    )


def _install(families: tuple[str, ...], packages: Mapping[str, str], programs: Iterable[str]) -> str:
    """Return the command that installs programs on this distribution. ``packages``: family of distributions → names of
    the packages. If no family is known, return advice that names the programs."""
    for family in families:
        if family in packages:
            return f"{INSTALLERS[family]} {packages[family]}"
    return f"install {', '.join(programs)} with this distribution's package manager"


def _kernel() -> Need:
    def find() -> str:
        return f"Linux {kernels.find_kernel(practising.SHAPE.kernel, kernels.kernel_cache_dir()).release}"

    return _asked("practice-kernel", "run a practice machine", find)


def _memory() -> Need:
    shape = practising.SHAPE
    needed = shape.hardware.memory_mib + room.QEMU_MIB

    def enough() -> str:
        room.check_memory(shape.name, shape.hardware.memory_mib)
        return f"at least {needed} MiB of memory"

    return _asked("practice-memory", "run a practice machine", enough)


def _asked(ident: str, purpose: str, ask: Callable[[], str]) -> Need:
    """Return a need with the state ``ok`` if ``ask`` returns without an error. If ``ask`` raises a HostError with
    advice, the state is ``missing``. If it raises a HostError without advice, the state is ``not_here``.
    """
    try:
        return Need(ident, purpose, "ok", ask())
    except HostError as error:
        return Need(ident, purpose, "missing" if error.advice else "not_here", error.message, error.advice)


def _ssh_keygen(families: tuple[str, ...]) -> Need:
    purpose, program = "sign the verdict of a watch (--sign)", "ssh-keygen"
    place = shutil.which(program)
    if place is not None:
        return Need(program, purpose, "ok", place)
    return Need(program, purpose, "missing", f"{program} not installed", _install(families, SSH_KEYGEN, [program]))
