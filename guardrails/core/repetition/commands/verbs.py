"""
The meaning of a word of a command if it is a verb, and the purpose of an HTTP request.
"""

import re

from collections.abc import Sequence
from enum import Enum
from typing import Final

from guardrails.core.values.late_pattern import pattern
from guardrails.core.values.tool_name import TOKEN

from .programs import ACTS, AWAITS, HAPPENS, LOOKS, TASK_NAMES


_METHOD: Final = pattern(r"(?:-[sSfLkig]*X|--(?:request|method)|-Method)=?(?P<said>.*)")
_SENDS: Final = pattern(r"-[sSfLkig]*[dFT].*|--(?:data|json|form|upload-file|post-|body-).*|-(?:Body|InFile)")
_FIELDS: Final = pattern(r"-[fF].*|--(?:field|raw-field|input|body).*")
_PROBES: Final = pattern(r"-[sSfLkig]*I|--(?:head|spider|retry)|.*%\{(?:http|response)_code\}", re.DOTALL)
"""Asked is only whether something answers."""
_METHODS: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_LIVE: Final = pattern(
    r"/(?:health(?:z|[-_]?check)?|alive|heartbeat|up|ready(?:z|ness)?|readiness|live(?:z|ness)?|status(?:es)?|state|progress|ping|poll)(?:$|[/?#.])"
    r"|/(?:jobs|runs|builds|deployments|deploys|pipelines|operations|executions|workflows)/[^/?#]",
    re.IGNORECASE,
)


class Kind(Enum):
    """
    A command, or a word of one, of which something is known.
    """

    LOOKS = "looks"
    """At what is there, here or elsewhere."""
    HAPPENS = "happens"
    """At what goes on by itself, unless something is done to that."""
    AWAITS = "awaits"
    ACTS = "acts"
    TASK = "task"
    """Acts, unless a look follows."""


def verb(word: str) -> Kind | None:
    """
    Returns the kind of *word* if it is a verb: `get`, `describe-instances`, `ps:scale`, `DescribeInstances`,
    `proxy-status`.
    """
    # `logs:drains:add` adds, `pg:info` and `build:view` look.
    kinds = map(_part, reversed(word.split(":")[-4:]))
    return next((kind for kind in kinds if kind is not None), None)


def _part(word: str) -> Kind | None:
    tokens = [token.lower() for token in TOKEN.findall(word)]
    if tokens[:1] == ["batch"]:
        # `batch-get-builds`
        tokens = tokens[1:]
    if not tokens:
        return None
    first, several = tokens[0], len(tokens) > 1
    if several and (first in TASK_NAMES or (not {"or", "and"}.isdisjoint(tokens) and not ACTS.isdisjoint(tokens))):
        # `run-instances`, `get-or-create`
        return Kind.ACTS
    if first in ACTS:
        return Kind.ACTS
    if first in AWAITS or (several and first == "is"):
        return Kind.AWAITS
    if first in LOOKS:
        return Kind.LOOKS
    if "".join(tokens) in HAPPENS or (several and tokens[-1] in HAPPENS):
        return Kind.HAPPENS
    return Kind.TASK if first in TASK_NAMES else None


def is_live(address: str) -> bool:
    """
    Returns whether *address* names a thing that changes by itself: the health of a service, a job, a build.
    """
    return _LIVE.search(address) is not None


def request(rest: Sequence[str], *, everywhere: bool = False) -> Kind | None:
    """
    Returns the kind of an HTTP request: a look if it sends nothing and its address is live. With *everywhere* any
    address is live.
    """
    said = [
        match["said"] or (rest[at + 1] if at + 1 < len(rest) else "")
        for at, word in enumerate(rest)
        if (match := _METHOD.fullmatch(word)) is not None
    ]
    if any(method.upper() not in ("GET", "HEAD") for method in said) or any(word in _METHODS for word in rest[:2]):
        return Kind.ACTS
    if not said and not {"-G", "--get"} & {*rest}:
        if everywhere and "graphql" in rest:
            return Kind.ACTS if any("mutation" in word for word in rest) else Kind.LOOKS
        if any(map((_FIELDS if everywhere else _SENDS).fullmatch, rest)):
            return Kind.ACTS
    asks = everywhere or any(map(_PROBES.match, rest)) or any(is_live(word) for word in rest if word[:1] != "-")
    return Kind.LOOKS if asks else None
