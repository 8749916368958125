"""
A script as it is started: programs that only read with the options by which no settings of a repository start anything.
"""

from collections.abc import Collection
from dataclasses import replace

from guardrails.core.commands import programs

from .judged import known
from .tree import Command, Group, Script, Stage, Word


def prepared(script: Script, safe: Collection[str]) -> Script:
    """
    Returns *script* with the additions to commands of the programs *safe* that only read.
    """
    if not safe:
        return script
    return Script(
        tuple(replace(step, stages=tuple(_stage(stage, safe) for stage in step.stages)) for step in script.steps)
    )


def _stage(stage: Stage, safe: Collection[str]) -> Stage:
    if isinstance(stage, Group):
        return replace(stage, script=prepared(stage.script, safe))
    if not isinstance(stage, Command):
        return stage
    words = [known(word) for word in stage.words]
    if programs.program_of(words) not in safe:
        return stage
    globs = frozenset(place for place, word in enumerate(stage.words) if not word.is_fixed)
    made = programs.prepared(words, globs)
    left = list(reversed(stage.words))
    # What is added stands between the words, whose order stays.
    together = [left.pop() if left and known(left[-1]) == text else Word((text,)) for text in made.words]
    return replace(stage, words=tuple(together), assignments=(*stage.assignments, *sorted(made.environment.items())))
