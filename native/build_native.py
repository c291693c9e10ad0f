"""Define cffi's side of the native core: Python may call the functions that ``api.h`` declares.

The C files are built as a static library of their own (``setup.py``), with warnings as errors. Only cffi's generated
glue is compiled with the interpreter's ordinary flags.
"""

from pathlib import Path

from cffi import FFI

HERE = Path(__file__).parent

ffibuilder = FFI()
ffibuilder.cdef((HERE / "api.h").read_text(encoding="utf-8"))
ffibuilder.set_source(
    "jitter_workshop.bench._native",
    '#include "core.h"',
    include_dirs=["native"],
    define_macros=[("_GNU_SOURCE", "1")],
    libraries=["pthread", "dl"],
    py_limited_api=True,
)

if __name__ == "__main__":
    ffibuilder.compile(verbose=True)
