"""Read the hypervisor's signature directly from the processor (CPUID leaf 0x40000000 of x86).

The kernel shows this signature in no file that ordinary users can read. So this module executes the instruction CPUID.
Any program may execute this instruction. Sources: Intel SDM volume 2 for the instruction;
Documentation/virt/kvm/x86/cpuid.rst for the leaf.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os

KVM, TCG = "KVMKVMKVM", "TCGTCGTCGTCG"
_LEAF = 0x4000_0000
_CODE = bytes.fromhex(
    "53"  # push rbx
    "89f8"  # mov eax, edi: the leaf
    "31c9"  # xor ecx, ecx
    "4989f0"  # mov r8, rsi: where the answer goes
    "0fa2"  # cpuid
    "418900"  # mov [r8], eax
    "41895804"  # mov [r8+4], ebx
    "41894808"  # mov [r8+8], ecx
    "4189500c"  # mov [r8+12], edx
    "5b"  # pop rbx
    "c3"  # ret
)


@functools.cache
def hypervisor_signature() -> str:
    """Return the hypervisor's signature, at most 12 characters. Return "" on a processor other than x86, or if the
    kernel does not let this process make memory executable.

    Call this function only in a guest: without a hypervisor the leaf means nothing.
    """
    if os.uname().machine != "x86_64":
        return ""
    try:
        with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as memory:
            memory.write(_CODE)
            return _ask(memory)
    except (OSError, ValueError):
        return ""


def _ask(memory: mmap.mmap) -> str:
    place = ctypes.c_char.from_buffer(memory)
    try:
        answer = (ctypes.c_uint32 * 4)()
        function = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_void_p)(ctypes.addressof(place))
        function(_LEAF, ctypes.addressof(answer))
    finally:
        del place
    text = bytes(answer)[4:].rstrip(b"\0").decode("ascii", "replace")
    return text if text.isprintable() else ""
