"""Check the Debian package and the RPM: each is built from a fresh source distribution, installed where only Python is,
used, and removed. The root folder has a Debian of its own (mmdebstrap), without a network and without a checkout."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from jitter_workshop import __version__
from jitter_workshop.practice import apt

REPOSITORY = Path(__file__).parents[2]
FOLDER = "usr/lib/jitter-workshop"
DEPENDS = ("libc6", "libgcc-s1", "libstdc++6", "python3", "zlib1g")
"""The packages on which the Debian package depends."""
SCRIPTS = ("base-files", "base-passwd", "coreutils", "dash", "diffutils", "dpkg", "libc-bin", "sed", "tar")
OWN_BOOKS = ("var/lib/dpkg", "var/lib/rpm", "var/log", "var/cache", "tmp", "dev", "proc", "sys", "home")
"""Folders in which a package manager keeps its books, or a user the runs."""
DOCUMENTS = ("usr/share/doc", "usr/share/licenses", "usr/share/python3", "usr/share/lintian")
"""Folders in which each distribution has its own documents and helpers."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a folder of each kind of package, and the root folder ``root``. They are made side by side. If a
    tool for it is missing, a folder is left out, and ``NAME.log`` says why."""
    place = tmp_path_factory.mktemp("packages")
    (place / ".rpmmacros").write_text("%_binary_payload w1.gzdio\n")  # packed fast: these files are not kept
    fast = os.environ | {"DPKG_DEB_COMPRESSOR_LEVEL": "1", "HOME": str(place)}
    started = []
    for name in ("deb", "rpm", "root"):
        program = [sys.executable, str(REPOSITORY / "scripts" / "packages.py"), name, "--out", str(place / name)]
        words = bootstrap(place / "root") if name == "root" else program
        with (place / f"{name}.log").open("w") as log:
            if words:
                started.append((name, subprocess.Popen(words, env=fast, stdout=log, stderr=log)))
            else:
                log.write("no mmdebstrap here, or not root")
    for name, process in started:
        assert process.wait(500) == 0 or said_offline(place, name), (place / f"{name}.log").read_text()[-3000:]
    return place


def bootstrap(place: Path) -> list[str]:
    """Return the command that makes a root folder with this Debian's Python, a package manager, and what the package
    depends on; [] where it cannot run."""
    if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
        return []
    release = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    words = ["mmdebstrap", "--quiet", "--variant=custom", "--mode=root", "--format=directory"]
    words += [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "locale")]
    words.append('--aptopt=APT::Sandbox::User "root"')  # apt's own user cannot look into pytest's folder
    return [
        *words,
        f"--include={','.join((*DEPENDS, *SCRIPTS))}",
        release["VERSION_CODENAME"],
        str(place),
        apt.archive(),
    ]


def said_offline(place: Path, name: str) -> bool:
    """Return whether the log of a failed command says that there is no network."""
    return bool(re.search("Could not resolve|Could not connect|Temporary failure", (place / f"{name}.log").read_text()))


def found(made: Path, kind: str) -> Path:
    """Return the built package, or skip with the reason why it could not be built here."""
    files = list((made / kind).glob(f"*.{kind}"))
    if not files:
        pytest.skip((made / f"{kind}.log").read_text().strip())
    return files[0]


@pytest.fixture
def deb(made: Path) -> Path:
    return found(made, "deb")


@pytest.fixture
def rpm(made: Path) -> Path:
    return found(made, "rpm")


@pytest.fixture
def root(made: Path) -> Path:
    place = made / "root"
    if not (place / "usr" / "bin" / "dpkg").exists():
        pytest.skip((made / "root.log").read_text().strip()[-300:])
    for name in ("home", "usr/share/doc", "usr/share/licenses", "usr/share/man/man1"):  # each system has them
        (place / name).mkdir(parents=True, exist_ok=True)
    return place


def inside(root: Path, words: Sequence[str], said: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command below the root folder, in namespaces of its own: no network, and its mounts end with it."""
    mounts = "mount -t proc proc $0/proc && mount --rbind /sys $0/sys && mount --rbind /dev $0/dev"
    entered = ["unshare", "--mount", "--net", "--pid", "--fork", "sh", "-c", f'{mounts} && exec chroot "$0" "$@"']
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/home", "LANG": "C.UTF-8", "TERM": "dumb"}
    environment["DEBIAN_FRONTEND"] = "noninteractive"
    return subprocess.run(
        [*entered, str(root), *words],
        env=environment,
        input=said,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def files(root: Path) -> set[str]:
    """Return the paths below a root folder, without the package managers' books and the user's own files."""
    paths = set()
    for folder, names, plain in os.walk(root):
        relative = Path(folder).relative_to(root)
        names[:] = [name for name in names if str(relative / name) not in OWN_BOOKS]
        paths |= {str(relative / name) for name in (*names, *plain)}
    return paths


def works(root: Path) -> None:
    """Check what an installed copy has to do."""
    tool = "/usr/bin/jitter-workshop"
    assert inside(root, [tool, "--version"]).stdout.split() == ["jitter-workshop", __version__]
    looked = inside(root, [tool, "status", "--json"])
    assert looked.returncode in (0, 1), looked.stderr
    assert json.loads(looked.stdout)["checks"]
    run = inside(root, [tool, "measure", "--json", "--duration", "1"])
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["format_version"] == 1
    listed = inside(root, [tool, "lessons", "list"])
    assert "Pinning" in listed.stdout, listed.stderr
    assert inside(root, [tool, "man"]).stdout.startswith(".TH JITTER\\-WORKSHOP")
    walked = inside(root, [tool, "--plain"], "q\n")
    assert (walked.returncode, "Pinning" in walked.stdout) == (0, True), walked.stderr
    # Textual and Pillow are loaded from the package's own folder, each with its libraries.
    code = f"import sys; sys.path.insert(0, '/{FOLDER}'); import textual, PIL._imagingft as ft"
    code += "; print(textual.__file__, ft.__file__)"
    loaded = inside(root, ["/usr/bin/python3", "-I", "-B", "-c", code])
    assert loaded.stdout.count(f"/{FOLDER}/") == 2, loaded.stderr


def test_the_debian_package_is_installed_used_and_removed(deb: Path, root: Path) -> None:
    before = files(root)
    shutil.copy(deb, root / "tmp" / "package.deb")
    installed = inside(root, ["dpkg", "--install", "/tmp/package.deb"])
    assert installed.returncode == 0, installed.stderr
    assert list((root / FOLDER / "textual" / "__pycache__").glob("*.pyc"))
    works(root)
    removed = inside(root, ["dpkg", "--purge", "jitter-workshop"])
    assert removed.returncode == 0, removed.stderr
    assert files(root) == before


def test_the_rpm_is_installed_used_and_removed(rpm: Path, root: Path) -> None:
    """Rpm checks no dependency here: all other files of this root folder are Debian's."""
    checked = subprocess.run(["rpm", "-K", rpm], capture_output=True, text=True, check=True).stdout
    assert checked.strip().endswith("digests OK")
    before = files(root)
    manager = ["rpm", "--root", str(root), "--dbpath", "/var/lib/rpm", "--nodeps"]
    installed = subprocess.run([*manager, "-i", rpm], capture_output=True, text=True, check=False)
    assert installed.returncode == 0, installed.stderr
    works(root)
    removed = subprocess.run([*manager, "-e", "jitter-workshop"], capture_output=True, text=True, check=False)
    assert removed.returncode == 0, removed.stderr
    assert files(root) == before


def named(paths: Sequence[str]) -> set[str]:
    """Return the files of a package as another one would have them: without byte code, documents and packing."""
    kept = (path.strip().lstrip("./").removesuffix(".gz") for path in paths)
    return {
        path.replace("zsh/site-functions", "zsh/vendor-completions")
        for path in kept
        if path and "__pycache__" not in path and not path.startswith(DOCUMENTS)
    }


def test_both_packages_have_the_same_files(deb: Path, rpm: Path) -> None:
    archive = subprocess.run(["dpkg-deb", "--fsys-tarfile", deb], capture_output=True, check=True).stdout
    listed = subprocess.run(["tar", "t"], input=archive, capture_output=True, check=True).stdout.decode().splitlines()
    own = subprocess.run(["rpm", "-qpl", rpm], capture_output=True, text=True, check=True).stdout.splitlines()
    folders = {f"{name.rstrip('/')}" for name in named(listed) if name.endswith("/")}
    assert {name for name in named(listed) if not name.endswith("/")} == named(own) - folders
    assert {
        "usr/bin/jitter-workshop",
        "usr/share/man/man1/jitter-workshop.1",
        "usr/share/bash-completion/completions/jitter-workshop",
        "usr/share/zsh/vendor-completions/_jitter-workshop",
        "usr/share/fish/vendor_completions.d/jitter-workshop.fish",
        f"{FOLDER}/jitter_workshop/bench/_native.abi3.so",
    } <= named(own)


def test_each_package_in_the_folder_has_a_licence_in_the_copyright_file(deb: Path) -> None:
    (vendor,) = deb.parent.glob("*.orig-vendor.tar.gz")
    with tarfile.open(vendor) as archive:
        inside_it = {Path(name).name.partition("-")[0] for name in archive.getnames()}
    text = (REPOSITORY / "assets" / "packaging" / "debian" / "copyright").read_text()
    assert set(re.findall(r"^Files: vendor/(\w+)-\*$", text, re.MULTILINE)) == inside_it


def test_the_package_depends_on_nothing_that_the_root_folder_has_by_chance(deb: Path) -> None:
    said = subprocess.run(["dpkg-deb", "-f", deb, "Depends"], capture_output=True, text=True, check=True).stdout
    names = {re.split(r"[ :(]", one.strip())[0] for one in said.split(",")}
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    assert names - {version} == set(DEPENDS)


LEFT = ("no-signature", "no-packager-tag", "no-group-tag", "hdrh/dump.py")
"""Errors of rpmlint that are left: whoever publishes an RPM signs it, Fedora no longer wants the two tags, and a file
of another package is as its authors made it."""


@pytest.mark.soak
@pytest.mark.parametrize("checker", ["lintian", "rpmlint"])
def test_the_distribution_s_own_checker_finds_no_error(checker: str, request: pytest.FixtureRequest) -> None:
    program = shutil.which(checker)
    if program is None:
        pytest.skip(f"no {checker} here")
    file = request.getfixturevalue({"lintian": "deb", "rpmlint": "rpm"}[checker])
    done = subprocess.run([program, file], capture_output=True, text=True, timeout=300, check=False)
    errors = [line for line in done.stdout.splitlines() if re.search(r"(^| )E: ", line)]
    errors = [line for line in errors if not any(left in line for left in LEFT)]
    assert not errors, "\n".join(errors[:20])
