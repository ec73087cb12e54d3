"""The one thing that pyproject.toml cannot say: a compiled module, which is built where that works and never needed."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

#: For one Python only where there is no such thing as an interface of all versions that has what is needed.
LIMITED = sys.version_info >= (3, 11)
#: The oldest minor version that can load it. From 3.13 on the headers call functions that take other lengths before.
SINCE = 13 if sys.version_info >= (3, 13) else 11
#: Python itself must be CPython with its lock; the variable leaves the module out of a wheel for every machine.
WANTED = (
    sys.implementation.name == "cpython"
    and not sysconfig.get_config_var("Py_GIL_DISABLED")
    and not os.environ.get("NEARDUP_PURE")
)

setup(
    ext_modules=[
        Extension(
            "scrapy_neardup.hashing._kernels",
            ["scrapy_neardup/hashing/_kernels.c"],
            depends=sorted(map(str, Path("scrapy_neardup/hashing").glob("_kernels*.h"))),
            define_macros=[("Py_LIMITED_API", f"0x03{SINCE:02X}0000")] if LIMITED else [],
            libraries=["m"] if os.name == "posix" else [],
            py_limited_api=LIMITED,
            optional=True,
        )
    ]
    if WANTED
    else [],
    options={"bdist_wheel": {"py_limited_api": f"cp3{SINCE}"}} if LIMITED and WANTED else {},
)
