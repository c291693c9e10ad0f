"""Write one archive that turns a machine without the internet into a class host.

The archive has the class file, Ansible files, ``install.py``, and wheels of this tool and its dependencies.
``install.py`` unpacks the wheels and runs ``class init``. The wheels are built from this machine's installed files, so
the class host gets the same version (https://packaging.python.org/specifications/binary-distribution-format).
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import io
import os
import platform
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from importlib import resources
from importlib.metadata import Distribution
from pathlib import Path

from jitter_workshop.classroom.install import NAME, files_of, needed
from jitter_workshop.errors import HostError

FOLDER = "jitter-workshop-class"
_EPOCH = (2020, 1, 1, 0, 0, 0)
_EPOCH_S = 1_577_836_800
"""The time of every file in the archive, in seconds since 1970. It is fixed, so an archive of the same files has the
same bytes."""


def write_bundle(out: Path, class_data: bytes) -> None:
    """Write the archive (``.tar.gz``). If this fails, no file is left. Raise HostError if the file exists or cannot be
    written."""
    made = list(contents(class_data))
    try:
        with out.open("xb") as file:
            try:
                with (
                    gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed,
                    tarfile.open(fileobj=packed, mode="w") as archive,
                ):
                    for name, data in made:
                        info = tarfile.TarInfo(f"{FOLDER}/{name}")
                        info.size, info.mode, info.mtime = len(data), 0o644, _EPOCH_S
                        archive.addfile(info, io.BytesIO(data))
                file.flush()
                os.fsync(file.fileno())
            except BaseException:
                with contextlib.suppress(OSError):
                    out.unlink()
                raise
    except FileExistsError:
        raise HostError(f"{out} exists already", "choose another name, or remove this file first") from None
    except OSError as error:
        raise HostError(f"{out} cannot be written: {error.strerror}") from error


def contents(class_data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of each file in the class's archive. The archive holds the installed distributions
    that the workshop needs. Raise HostError if one of them was not installed from a wheel."""
    assets = Path(str(resources.files("jitter_workshop.assets")))
    yield "install.py", (assets / "class" / "install.py").read_bytes()
    yield "class.toml", class_data
    for source in sorted((assets / "ansible").rglob("*")):
        if source.is_file():
            yield f"ansible/{source.relative_to(assets / 'ansible')}", source.read_bytes()
    for one in needed():
        name, data = wheel(one)
        yield f"wheels/{name}", data


def wheel(one: Distribution) -> tuple[str, bytes]:
    """Return a wheel of an installed distribution: its file name and bytes.

    Raise HostError for a distribution that was not installed from a wheel.
    """
    files = {name: source.read_bytes() for name, source in files_of(one).items()}
    info = next((name.partition("/")[0] for name in files if name.partition("/")[0].endswith(".dist-info")), None)
    if info is None:
        raise HostError(f"{one.metadata['Name']} was not installed from a wheel", "install it again with pip")
    tags = [
        line.partition(":")[2].strip()
        for line in (one.read_text("WHEEL") or "").splitlines()
        if line.startswith("Tag:")
    ]
    if info.startswith(NAME.replace("-", "_") + "-"):
        # The tag of an editable install ignores the native core, so set the tag here.
        tags = [f"cp311-abi3-linux_{platform.machine()}"]
        files[f"{info}/WHEEL"] = (
            f"Wheel-Version: 1.0\nGenerator: jitter-workshop\nRoot-Is-Purelib: false\nTag: {tags[0]}\n".encode()
        )
    record = f"{info}/RECORD"
    files.pop(record, None)
    lines = [f"{_quoted(name)},sha256={_digest(data)},{len(data)}" for name, data in sorted(files.items())]
    files[record] = "".join(f"{line}\n" for line in (*lines, f"{_quoted(record)},,")).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = (0o755 if ".so" in Path(name).suffixes else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return f"{info.removesuffix('.dist-info')}-{_together(tags)}.whl", out.getvalue()


def _together(tags: list[str]) -> str:
    """Join several wheel tags into one, such as ``py2.py3-none-any``. A tag has three parts: Python, ABI and platform.
    Dots join the different values of each part. Without ``tags``, return the tag of pure Python."""
    parts = zip(*(tag.split("-", 2) for tag in tags or [f"py{sys.version_info[0]}-none-any"]), strict=True)
    return "-".join(".".join(dict.fromkeys(part)) for part in parts)


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


def _quoted(name: str) -> str:
    return f'"{name}"' if "," in name else name
