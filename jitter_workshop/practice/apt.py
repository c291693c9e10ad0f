"""Download Debian packages from this system's suites or from other suites. Nothing is installed.

For another suite or processor, apt gets a configuration of its own in a temporary folder. This configuration has the
address and the signing key of this system's archive.
"""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

from jitter_workshop.errors import HostError

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


class AptFailed(HostError):
    """Report that apt failed, with apt's own reason."""


class Apt:
    """Hold one configuration of apt. ``suites``: the suites to search; if empty, the suites of this system.
    ``architecture``: the type of processor; if empty, the type of this system."""

    def __init__(self, folder: Path, suites: tuple[str, ...] = (), architecture: str = "") -> None:
        self._options: list[str] = []
        if not suites:
            return
        for part in ("lists/partial", "cache/archives/partial"):
            (folder / part).mkdir(parents=True)
        signed = f"[signed-by={KEYRING}] " if KEYRING.exists() else ""
        lines = [f"deb {signed}{archive()} {suite} main" for suite in suites]
        (folder / "sources.list").write_text("\n".join(lines) + "\n")
        settings = {
            "Dir::Etc::sourcelist": folder / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::lists": folder / "lists",
            "Dir::State::status": "/dev/null",
            "Dir::Cache": folder / "cache",
            "Acquire::Languages": "none",
            # Icons and descriptions of programs are several times as large as what is looked for.
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        }
        if architecture:
            settings |= {"APT::Architecture": architecture, "APT::Architectures": architecture}
        if os.getuid() == 0:
            # The folder belongs to root, and apt's own user may not be able to look into the folders above it.
            settings["APT::Sandbox::User"] = "root"
        self._options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
        self._run("apt-get", "update", "-qq")

    def newest(self, package: str) -> str:
        """Return the highest version of a package. Release candidates do not count."""
        versions = []
        for line in self._run("apt-cache", "madison", package).splitlines():
            fields = [field.strip() for field in line.split("|")]
            if len(fields) == 3 and fields[2].endswith("Packages") and "~rc" not in fields[1]:
                versions.append(fields[1])
        if not versions:
            raise AptFailed(f"apt knows no package {package} (try: apt-get update; only Debian is known to work)")
        return sorted(versions, key=functools.cmp_to_key(_compared))[-1]

    def depends(self, package: str, version: str) -> list[str]:
        """Return the names of the packages on which this version of ``package`` depends. If a dependency has
        alternatives, take the first one."""
        for line in self._run("apt-cache", "show", f"{package}={version}").splitlines():
            kind, _, names = line.partition(": ")
            if kind == "Depends":
                return [choice.split("|")[0].split("(")[0].strip() for choice in names.split(",")]
        return []

    def needed(self, *packages: str) -> list[str]:
        """Return the names of these packages and of all their dependencies, direct and indirect. Packages that are only
        recommended are left out."""
        options = [
            "--no-recommends",
            "--no-suggests",
            "--no-conflicts",
            "--no-breaks",
            "--no-replaces",
            "--no-enhances",
        ]
        said = self._run("apt-cache", "depends", "--recurse", *options, *packages)
        # The packages that a package depends on are indented, and names in < > are no packages.
        return [line for line in said.splitlines() if line and line[0] not in " |<"]

    def download(self, package: str, folder: Path) -> None:
        """Download a package (NAME or NAME=VERSION) as a .deb into this folder."""
        self._run("apt-get", "download", "-qq", package, cwd=folder)

    def _run(self, program: str, *words: str, cwd: Path = Path("/")) -> str:
        command = [program, *self._options, *words]
        try:
            done = subprocess.run(
                command, cwd=cwd, capture_output=True, text=True, timeout=900, stdin=subprocess.DEVNULL, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise AptFailed(f"{program} {' '.join(words)} failed: {error}") from None
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no reason given"]
            raise AptFailed(f"{program} {' '.join(words)} failed: {lines[-1]}")
        return done.stdout


def archive() -> str:
    """Return the address from which this system gets Debian's main archive."""
    form = "$(LABEL) $(COMPONENT) $(REPO_URI)"
    done = subprocess.run(
        ["apt-get", "indextargets", "--format", form, "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    for line in done.stdout.splitlines():
        label, _, rest = line.partition(" ")
        component, _, uri = rest.partition(" ")
        if label == "Debian" and component == "main":
            return uri
    raise AptFailed("this system's apt knows no Debian archive (only Debian is known to work)")


def _compared(one: str, other: str) -> int:
    lower = subprocess.run(["dpkg", "--compare-versions", one, "lt", other], check=False, timeout=60)
    return -1 if lower.returncode == 0 else int(one != other)
