"""What pyproject.toml cannot say: the C core with its own strict flags, and cffi's abi3 extension around it."""

import os
from pathlib import Path

from setuptools import setup

# setuptools wants paths relative to the project; a build may start elsewhere.
os.chdir(Path(__file__).parent)

WARNINGS = "all extra error pedantic shadow conversion sign-conversion strict-prototypes missing-prototypes"
WARNINGS += " cast-qual pointer-arith undef vla format=2"
STRICT = ["-std=c11", "-O2", "-fPIC", "-fvisibility=hidden", *(f"-W{name}" for name in WARNINGS.split(" "))]

HEADERS = sorted(str(path) for path in Path("native").glob("*.h"))
SOURCES = sorted(str(path) for path in Path("native").glob("*.c") if not path.name.startswith("_"))

setup(
    libraries=[
        (
            "jitter_native",
            {
                "sources": SOURCES,
                "obj_deps": {"": HEADERS},
                "include_dirs": ["native"],
                "macros": [("_GNU_SOURCE", "1")],
                "cflags": STRICT,
            },
        )
    ],
    cffi_modules=["native/build_native.py:ffibuilder"],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
