"""Write the ACPI table (``assets/practice/table.asl``) of a machine with any number of CPUs."""

from __future__ import annotations

from jitter_workshop.paths import assets
from jitter_workshop.practice.shape import Hardware

REGISTERS = 4
"""The number of bytes that QEMU's pc-testdev has for P-states; further CPUs share these bytes."""
DOMAIN = 2
"""The number of CPUs in a shared frequency domain."""
PERFORMANCE = 0xFF000000
"""The address of pc-testdev's memory. Each CPU has PERFORMANCE_BYTES of it for its performance controls."""
PERFORMANCE_BYTES = 64
HIGHEST, NOMINAL, LOWEST_NONLINEAR, LOWEST = 200, 120, 60, 20
NOMINAL_MHZ, LOWEST_MHZ = 3000, 500


def source(hardware: Hardware) -> str:
    """Return the table in ACPI's source language."""
    names = [f"\\_SB.CPUS.C{cpu:03X}" for cpu in range(hardware.cpus)]
    filled = {
        "EXTERNALS": "\n".join(f"    External ({name}, ProcessorObj)" for name in names),
        "PROCESSORS": "\n".join(_processor(name, cpu, hardware) for cpu, name in enumerate(names)),
        "NOTIFY": "\n".join(f"                    Notify ({name}, 0x80)" for name in names),
        "NAMES": ", ".join(names),
        "PLATFORM": PLATFORM if hardware.pstates == "cppc" else "",
    }
    text = (assets() / "practice" / "table.asl").read_text()
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
        {_performance(cpu) if hardware.pstates == "cppc" else ""}
    }}"""


PLATFORM = r"""/* The system gets each platform capability that it asks for, even collaborative performance control. */
    Scope (\_SB) { Method (_OSC, 4) { Return (Arg3) } }"""


def _performance(cpu: int) -> str:
    """Return the ACPI object ``_CPC``, version 3, of one CPU (ACPI 6.5, section 8.4.6.1). Its performance levels are
    fixed. Writes to its control registers have no effect."""

    def register(n: int) -> str:
        at = PERFORMANCE + cpu * PERFORMANCE_BYTES + 4 * n
        return f"ResourceTemplate () {{ Register (SystemMemory, 32, 0, {at:#x}, 3) }}"

    none = "ResourceTemplate () { Register (SystemMemory, 0, 0, 0, 0) }"
    entries = [
        *("23", "3", str(HIGHEST), str(NOMINAL), str(LOWEST_NONLINEAR), str(LOWEST)),
        *(none, register(0), register(1), register(2)),  # guaranteed; desired, minimum, maximum
        *(none, none, none),  # tolerance, time window, wrap-around
        *(register(3), register(4), register(5), register(6)),  # reference, delivered, limited, enable
        *(none, none, none),  # autonomous: selection, window, preference
        *(str(NOMINAL), str(LOWEST_MHZ), str(NOMINAL_MHZ)),
    ]
    return f"Name (_CPC, Package () {{ {', '.join(entries)} }})"
