"""
The knowledge that the policy `default` has of tools by their names, for policies that are made in code.
"""

from typing import Final

from guardrails.core.engine.plan import Rule

from .loading import load_document


READ_ONLY_NAMES: Final[tuple[Rule, ...]] = tuple(
    rule for rule in load_document("default")["rules"] if "read_only" in rule.declared
)
"""
The rules that tell looks from work by the tools' names: `Policy(guards, rules=[*own, *READ_ONLY_NAMES])`.

Without them a policy made in code guesses nothing: a tool that declares nothing is taken to change something. The
declaration of a tool, or a rule before these, outweighs them.
"""
