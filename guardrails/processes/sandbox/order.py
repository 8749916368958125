"""
The order that the launcher gets, the same for each backend.
"""

import os

from collections.abc import Mapping
from typing import Any

from guardrails.processes.launch import told

from .confinement import Confinement, Program
from .folders import interpreter, package


def launcher() -> tuple[str, ...]:
    """
    The arguments that start the launcher. No variable and no file beside this library changes what it does.
    """
    start = f"import sys;sys.path.append({os.path.dirname(package())!r});from guardrails.processes.launch import main;main()"
    return interpreter(), "-I", "-S", "-c", start


def order(confinement: Confinement, program: Program, folder: str, **more: Any) -> dict[str, str]:
    """
    The variables that tell the launcher to run *program* in *folder*; *more* is what it restricts, by its names.
    """
    tree = isinstance(program, Mapping)
    limits = confinement.limits
    return told(
        {
            "argv": None if tree else list(program),
            "tree": program if tree else None,
            "folder": folder,
            "environment": dict(confinement.environment),
            "limits": {
                "memory_bytes": limits.memory_bytes,
                "cpu_s": limits.cpu_s,
                "processes": limits.processes,
                "file_bytes": limits.file_bytes,
            },
            "counted": False,
            "make": [],
            "same": [],
            **more,
        }
    )


def bare() -> dict[str, str]:
    """
    The environment that the launcher itself needs, beside its order.
    """
    return {"PATH": "/usr/bin:/bin", "LC_CTYPE": "C.UTF-8"}
