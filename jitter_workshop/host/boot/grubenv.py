"""Read and change GRUB's environment block (GNU GRUB manual, "Environment block").

GRUB keeps a few variables in these 1,024 bytes from one boot to the next. It can write only into the file's own blocks,
so the file keeps its size and its place.
"""

from __future__ import annotations

SIZE = 1024
SECTOR = 512
"""Size of a sector, which a disk writes whole or not at all; many disks have larger ones, none a smaller."""
_HEADER = b"# GRUB Environment Block\n"


def variables(block: bytes) -> dict[str, str]:
    """Return name → value. Raise ValueError with the reason if it is not a block as ``grub-editenv`` makes it."""
    found = {}
    for line in _lines(block):
        name, equals, value = line.partition(b"=")
        if equals and not line.startswith(b"#"):
            found[name.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
    return found


def with_variable(block: bytes, name: str, value: str) -> bytes:
    """Return the block with one variable set, or without it where ``value`` is "".

    Raise ValueError as ``variables`` does, and where the value does not fit.
    """
    key = f"{name}=".encode()
    if "\n" in value or "\\" in value:
        raise ValueError("a value that GRUB would have to escape")
    lines = [line for line in _lines(block) if not line.startswith(key)]
    if value:
        lines.append(key + value.encode())
    data = b"".join(line + b"\n" for line in lines)
    if len(data) > SIZE:
        raise ValueError("GRUB's environment block is full")
    return data.ljust(SIZE, b"#")


def torn_by_a_cut(old: bytes, new: bytes) -> bool:
    """Return True if a power cut while ``new`` overwrites ``old`` could mix them: both sectors change."""
    return sum(old[at : at + SECTOR] != new[at : at + SECTOR] for at in range(0, SIZE, SECTOR)) > 1


def _lines(block: bytes) -> list[bytes]:
    if len(block) != SIZE or not block.startswith(_HEADER):
        raise ValueError("it is not an environment block of 1,024 bytes")
    if b"\\" in block or b"\0" in block:
        raise ValueError("it holds an escaped value")
    text = block.rstrip(b"#")
    if not text.endswith(b"\n"):
        raise ValueError("its last line does not end with a newline")
    return text.split(b"\n")[:-1]
