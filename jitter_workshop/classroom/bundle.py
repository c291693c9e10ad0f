"""One archive from which a machine without the internet becomes a class host: wheels of all that runs here, the class
file, and a script that unpacks the one and goes on with ``class init``.

Wheels are made of what is installed (https://packaging.python.org/specifications/binary-distribution-format): what was
tried here is what the class gets.
"""

from __future__ import annotations

import base64
import hashlib
import io
import platform
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from importlib import import_module, resources
from importlib.metadata import Distribution
from pathlib import Path

from jitter_workshop.classroom.install import NAME, PARTS, distribution_files, needed
from jitter_workshop.errors import HostError

FOLDER = "jitter-workshop-class"
_LEFT_OUT = ("INSTALLER", "REQUESTED", "RECORD", "direct_url.json")
_EPOCH = (2020, 1, 1, 0, 0, 0)


def write(out: Path, class_data: bytes, force: bool = False) -> None:
    """Write the archive (``.tar.gz``). Raises HostError."""
    try:
        with out.open("wb" if force else "xb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
            for name, data in contents(class_data):
                info = tarfile.TarInfo(f"{FOLDER}/{name}")
                info.size, info.mode = len(data), 0o644
                archive.addfile(info, io.BytesIO(data))
    except FileExistsError:
        raise HostError(f"{out} is there already", "another name, or remove it first") from None
    except OSError as error:
        raise HostError(f"{out} cannot be written: {error.strerror}") from error


def contents(class_data: bytes) -> Iterator[tuple[str, bytes]]:
    """What is in it: name and bytes."""
    yield "install.py", resources.files("jitter_workshop.assets").joinpath("class", "install.py").read_bytes()
    yield "class.toml", class_data
    for one in needed():
        name, data = wheel(one)
        yield f"wheels/{name}", data


def wheel(one: Distribution) -> tuple[str, bytes]:
    """A wheel of an installed distribution: its file name and bytes. Raises HostError for one that was not installed
    from a wheel."""
    ours = one.metadata["Name"].replace("_", "-").lower() == NAME
    files = {str(relative): source.read_bytes() for source, relative in distribution_files(one)}
    info = next((name.partition("/")[0] for name in files if name.partition("/")[0].endswith(".dist-info")), None)
    if info is None:
        raise HostError(f"{one.metadata['Name']} was not installed from a wheel", "install it again with pip")
    files = {n: d for n, d in files.items() if not (n.startswith(info) and n.rpartition("/")[2] in _LEFT_OUT)}
    tags = [
        line.partition(":")[2].strip()
        for line in (one.read_text("WHEEL") or "").splitlines()
        if line.startswith("Tag:")
    ]
    if ours:
        # Also of a checkout that is installed in place: the package as it runs here, with its native core.
        files |= _own_files()
        tags = [f"cp311-abi3-linux_{platform.machine()}"]
        files[f"{info}/WHEEL"] = (
            f"Wheel-Version: 1.0\nGenerator: jitter-workshop\nRoot-Is-Purelib: false\nTag: {tags[0]}\n".encode()
        )
    record = f"{info}/RECORD"
    lines = [f"{_quoted(name)},sha256={_digest(data)},{len(data)}" for name, data in sorted(files.items())]
    files[record] = "".join(f"{line}\n" for line in (*lines, f"{_quoted(record)},,")).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return f"{info.removesuffix('.dist-info')}-{_together(tags)}.whl", out.getvalue()


def _own_files() -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for part in PARTS:
        folder = Path(next(iter(import_module(part).__path__)))
        for source in sorted(folder.rglob("*")):
            if source.is_file() and "__pycache__" not in source.parts:
                found[f"{part.replace('.', '/')}/{source.relative_to(folder)}"] = source.read_bytes()
    return found


def _together(tags: list[str]) -> str:
    """Several tags as a file name says them: each part once, joined by dots."""
    parts = zip(*(tag.split("-", 2) for tag in tags or [f"py{sys.version_info[0]}-none-any"]), strict=True)
    return "-".join(".".join(dict.fromkeys(part)) for part in parts)


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


def _quoted(name: str) -> str:
    return f'"{name}"' if "," in name else name
