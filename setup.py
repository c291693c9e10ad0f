"""The one thing pyproject.toml cannot say: build the native core with cffi as one abi3 extension."""

from setuptools import setup

setup(
    cffi_modules=["native/build_native.py:ffibuilder"],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
