"""Build a Debian package and an RPM of a release, for the distribution and the Python of this machine.

    sh scripts/workshop.sh package [deb] [rpm] [--out FOLDER]

Both are built from the source distribution, offline, by the files in ``assets/packaging``. The packages that the
program needs come as wheels, made of the files in this environment. They are a component of Debian's source package
(``orig-vendor``), and the second source of the RPM. A package holds compiled modules of one version of Python, so the
environment must have the version of /usr/bin/python3. Where that differs, or a tool is missing, the package is left
out, and a line says so.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from email.utils import formatdate
from importlib.metadata import distribution
from pathlib import Path

import dist

from jitter_workshop.classroom.bundle import wheel
from jitter_workshop.classroom.install import NAME, needed

PYTHON = "/usr/bin/python3"
"""The Python for which a package is built, and which runs what it installs."""
BUILD = ("setuptools", "cffi")
"""The packages that build the program (pyproject.toml, build-system)."""
KINDS = ("deb", "rpm")
TOOLS = {"deb": ("dpkg-buildpackage", "dh", "dh_python3"), "rpm": ("rpmbuild", "rpm2cpio")}
HINTS = {
    "deb": "Debian: apt install dpkg-dev debhelper dh-python python3-dev python3-pip",
    "rpm": "Fedora: dnf install rpm-build python3-devel python3-pip, Debian: apt install rpm",
}


def why_not(kind: str) -> str:
    """Return why a package cannot be built here, "" if it can. ``kind``: deb or rpm."""
    missing = [tool for tool in TOOLS[kind] if shutil.which(tool) is None]
    if missing:
        return f"there is no {missing[0]} here ({HINTS[kind]})"
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    code = "import pip, sys; print('%d.%d' % sys.version_info[:2])"
    asked = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=False)
    if asked.returncode:
        return f"{PYTHON} has no pip ({HINTS[kind]})"
    if asked.stdout.strip() != version:
        return f"{PYTHON} is Python {asked.stdout.strip()}, and the environment has {version}"
    return ""


def epoch() -> int:
    """Return the time of a build in seconds since 1970: SOURCE_DATE_EPOCH, that of the last commit, or now."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not given:
        words = ["git", "log", "-1", "--format=%ct"]
        asked = subprocess.run(words, cwd=dist.REPOSITORY, capture_output=True, text=True, check=False)
        given = asked.stdout.strip()
    return int(given or time.time())


def vendor(file: Path) -> None:
    """Write the archive of wheels (``.tar.gz``): all that the program and its build need, without the program. Equal
    wheels give equal bytes."""
    found = {one.metadata["Name"]: one for one in needed(extra="") if one.metadata["Name"] != NAME}
    found |= {name: distribution(name) for name in BUILD}
    with (
        gzip.GzipFile(file, "wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name, data in sorted(map(wheel, found.values())):
            info = tarfile.TarInfo(f"vendor/{name}")
            info.size, info.mode, info.mtime = len(data), 0o644, epoch()
            archive.addfile(info, io.BytesIO(data))


def version_of(source: Path) -> str:
    """Return the version of an unpacked source distribution."""
    return source.name.rpartition("-")[2]


def maintainer(source: Path) -> str:
    """Return the name and address of the package's maintainer, from ``debian/control``."""
    control = (source / "assets" / "packaging" / "debian" / "control").read_text()
    return next(line.partition(": ")[2] for line in control.splitlines() if line.startswith("Maintainer: "))


def deb(archive: Path, work: Path, out: Path) -> list[Path]:
    """Build a Debian package and its source package. Return their files. ``archive``: the source distribution."""
    source = dist.unpacked(archive, work / "deb")
    version = version_of(source)
    orig = work / "deb" / f"{NAME}_{version}.orig.tar.gz"
    shutil.copy(archive, orig)
    vendor(orig.with_name(f"{NAME}_{version}.orig-vendor.tar.gz"))
    shutil.unpack_archive(orig.with_name(f"{NAME}_{version}.orig-vendor.tar.gz"), source)
    shutil.copytree(source / "assets" / "packaging" / "debian", source / "debian")
    (source / "debian" / "changelog").write_text(
        f"{NAME} ({version}-1) unstable; urgency=medium\n\n"
        f"  * Version {version}: /usr/share/doc/{NAME}/changelog.gz says what is new.\n\n"
        f" -- {maintainer(source)}  {formatdate(epoch())}\n"
    )
    lacking = subprocess.run(["dpkg-checkbuilddeps"], cwd=source, capture_output=True, text=True, check=False)
    if lacking.returncode:
        raise dist.Failed(lacking.stderr.strip().splitlines()[-1])
    dist.run(["dpkg-buildpackage", "--no-sign"], source, {"SOURCE_DATE_EPOCH": str(epoch())})
    made = [
        file for file in (work / "deb").iterdir() if file.is_file() and file.suffix in (".deb", ".dsc", ".gz", ".xz")
    ]
    return [Path(shutil.copy(file, out)) for file in sorted(made)]


def rpm(archive: Path, work: Path, out: Path) -> list[Path]:
    """Build an RPM. Return its file. ``archive``: the source distribution."""
    source = dist.unpacked(archive, work / "rpm")
    top, version = work / "rpmbuild", version_of(source)
    for folder in ("SOURCES", "SPECS"):
        (top / folder).mkdir(parents=True)
    shutil.copy(archive, top / "SOURCES")
    vendor(top / "SOURCES" / f"{NAME}-vendor-{version}.tar.gz")
    spec = (source / "assets" / "packaging" / f"{NAME}.spec").read_text()
    date = time.strftime("%a %b %d %Y", time.gmtime(epoch()))
    spec = re.sub(r"(?m)^Version:.*$", f"Version:        {version}", spec)
    spec += f"\n%changelog\n* {date} {maintainer(source)} - {version}-1\n- Version {version}\n"
    (top / "SPECS" / f"{NAME}.spec").write_text(spec)
    words = ["rpmbuild", "-bb", "--define", f"_topdir {top}"]
    if not Path("/etc/fedora-release").exists() and shutil.which("dnf") is None:
        # On Debian, what the build needs comes from Debian's packages, of which rpm knows nothing.
        words.append("--nodeps")
    dist.run([*words, str(top / "SPECS" / f"{NAME}.spec")], work, {"SOURCE_DATE_EPOCH": str(epoch())})
    return [Path(shutil.copy(file, out)) for file in sorted((top / "RPMS").rglob("*.rpm"))]


def add_sums(out: Path, made: list[Path]) -> None:
    """Add the files to the folder's list of checksums, which ``dist.py`` begins."""
    sums, names = out / dist.SUMS, {file.name for file in made}
    old = sums.read_text().splitlines() if sums.exists() else []
    lines = [line for line in old if line.partition("  ")[2] not in names]
    lines += [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in made]
    sums.write_text("".join(f"{line}\n" for line in lines))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="deb, rpm (default: both)")
    parser.add_argument(
        "--out", type=Path, default=dist.REPOSITORY / "dist", help="the folder of the files (default: dist)"
    )
    asked = parser.parse_args()
    if set(asked.kinds) - set(KINDS):
        parser.error(f"a package is one of {', '.join(KINDS)}")
    out: Path = asked.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    made: list[Path] = []
    try:
        with tempfile.TemporaryDirectory(prefix="jitter-workshop-packages-") as scratch:
            work, archive = Path(scratch), None
            for kind in asked.kinds or KINDS:
                why = why_not(kind)
                if why:
                    print(f"No {kind}: {why}.", file=sys.stderr)
                    continue
                archive = archive or dist.sdist(work, work)
                made += {"deb": deb, "rpm": rpm}[kind](archive, work, out)
    except dist.Failed as error:
        print(f"package: {error}", file=sys.stderr)
        return 2
    add_sums(out, made)
    for file in made:
        print(f"{file}  {file.stat().st_size / 1024:.0f} KiB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
