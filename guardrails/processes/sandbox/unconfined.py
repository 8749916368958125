"""
No sandbox: limits, and otherwise all rights of this process.
"""

import os

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from guardrails.processes.started import Started

from .confinement import Confinement, Program
from .order import bare, launcher, order


@dataclass(frozen=True, slots=True)
class Unconfined:
    """
    Programs run as this process does, within their limits and with their environment.
    """

    name: ClassVar[str] = "none"
    cannot: ClassVar[tuple[str, ...]] = ("nothing is confined: programs may do whatever this process may",)

    def started(self, confinement: Confinement, program: Program) -> Started:
        """
        *program*, by the launcher if the system has limits.
        """
        environment = dict(confinement.environment)
        for name in ("HOME", "TMPDIR"):
            if name in os.environ:
                environment.setdefault(name, os.environ[name])
        if os.name != "posix" and not isinstance(program, Mapping):
            arguments, variables = tuple(program), environment
        else:
            arguments = launcher()
            variables = {
                **bare(),
                **order(confinement, program, confinement.workspace, environment=environment, counted=True),
            }
        return Started(
            arguments=arguments,
            environment=variables,
            folder=confinement.workspace,
            backend=self.name,
            whole=False,
        )
