"""The lab's ACPI table for any number of CPUs: ``guest/lab.asl`` with what depends on the hardware filled in."""

from __future__ import annotations

from pathlib import Path

from tests.lab.shapes import Hardware

SOURCE = Path(__file__).with_name("guest") / "lab.asl"
REGISTERS = 4
"""Bytes that QEMU's pc-testdev has for P-states; further CPUs share them."""
DOMAIN = 2
"""CPUs of a shared frequency domain."""


def source(hardware: Hardware) -> str:
    """The table in ACPI's source language."""
    names = [f"\\_SB.CPUS.C{cpu:03X}" for cpu in range(hardware.cpus)]
    filled = {
        "EXTERNALS": "\n".join(f"    External ({name}, ProcessorObj)" for name in names),
        "PROCESSORS": "\n".join(_processor(name, cpu, hardware) for cpu, name in enumerate(names)),
        "NOTIFY": "\n".join(f"                    Notify ({name}, 0x80)" for name in names),
        "NAMES": ", ".join(names),
    }
    text = SOURCE.read_text()
    for word, value in filled.items():
        text = text.replace(f"@{word}@", value.strip())
    return text


def _processor(name: str, cpu: int, hardware: Hardware) -> str:
    register = f"ResourceTemplate () {{ Register (SystemIO, 8, 0, {0xE0 + cpu % REGISTERS:#x}, 1) }}"
    domain, members = (cpu // DOMAIN, DOMAIN) if hardware.pstates == "shared" else (cpu, 1)
    states = "LPSE" if cpu >= hardware.cpus - hardware.slow else "LPSS"
    return f"""    Scope ({name}) {{
        Name (_PCT, Package () {{
            {register},
            {register} }})
        Method (_PSS) {{ Return ({states}) }}
        Method (_PPC) {{ Return (LPPC) }}
        Name (_PSD, Package () {{ Package () {{ 5, 0, {domain}, 0xFC, {members} }} }})
        Method (_CST) {{ Return (LCST) }}
    }}"""
