"""
A policy file as the arguments of `Policy`.

Promises, each with a test:

* Settings that are each valid and do not go together are told where they stand, also those of a rule with those of the policy.
* Each file is held to the types by itself too, so that no mistake hides behind a file that replaces it.
"""

import os

from collections.abc import Iterable, Iterator
from os import PathLike
from typing import Any

from guardrails.core.guards import GUARDS, Kinds, kinds_of
from guardrails.core.guards.base import Guard
from guardrails.core.tools.tool import REPEATS
from guardrails.core.values.errors import PolicyError
from guardrails.core.values.schema import fit

from .check import file_type, wrong_together, wrong_words
from .file import Document, Mistake, Node, child, inner, mistakes_at, numbered, plain, read, rules


def load_document(source: str | PathLike[str], guards: Iterable[Guard | type[Guard]] = ()) -> dict[str, Any]:
    """
    Returns the arguments for `Policy` that a file, or a shipped policy, stands for. The key `sources` lists the files
    that were read. The *guards* are a person's own: instances are added, and for classes the file says whether and how
    they stand.

    Raises PolicyError with every mistake.
    """
    given = list(guards)
    made = [guard for guard in given if isinstance(guard, Guard)]
    classes = [each if isinstance(each, type) else type(each) for each in given]
    own = tuple(dict.fromkeys(cls for cls in classes if issubclass(cls, Guard)))
    kinds = kinds_of(own)
    document = read(source, kinds)
    root = document.root
    for guard in made:
        written = child(root, guard.name)
        if written is not None and type(guard) not in GUARDS:
            said = f"`{guard.name}` is given in code too: give its class there, or leave this out"
            document.mistakes.append(Mistake(written.key, said))
    document.mistakes += _wrong_words(root, own)
    arguments = _arguments(document, kinds)
    mistakes = list(_wrong_rules(arguments, root, made, kinds))
    if mistakes:
        raise PolicyError([str(mistake) for mistake in mistakes])
    arguments["sources"] = {os.path.abspath(name): content for name, content in document.files.items()}  # noqa: PTH100
    arguments["guards"] += [guard for guard in given if not (isinstance(guard, type) and issubclass(guard, Guard))]
    return {"name": str(source), "kinds": own, **arguments}


def _arguments(document: Document, kinds: Kinds) -> dict[str, Any]:
    """
    Returns the arguments that *document* stands for. Raises PolicyError with every mistake, file by file.
    """
    kind, arguments = file_type(kinds), dict[str, Any]()
    mistakes, failed = list(document.mistakes), False
    for part in [*(part for part in document.parts if part is not document.root), document.root]:
        if part is None:
            continue
        arguments, faults = fit(kind, plain(part))
        if part is document.root and failed:
            # Each rule was checked in its own file.
            faults = [fault for fault in faults if fault.path[:1] != ("tools",) or len(fault.path) == 1]
        failed = failed or bool(faults)
        mistakes += mistakes_at(faults, part, partial=part is not document.root)
    if mistakes or document.root is None:
        order = {id(source): place for place, source in enumerate(document.sources)}
        mistakes = sorted(
            dict.fromkeys(mistakes), key=lambda m: (order[id(m.position.source)], *m.position[1:], m.message)
        )
        raise PolicyError([str(mistake) for mistake in mistakes])
    return arguments


def _wrong_words(root: Node | None, own: Iterable[type[Guard]]) -> Iterator[Mistake]:
    """
    Returns the mistakes in a policy's own words: codes that no guard says, numbers that a message does not have.
    """
    messages, scopes = inner(root, "messages"), inner(root, "scopes")
    words, known = ({} if node is None else plain(node) for node in (messages, scopes))
    if isinstance(words, dict):
        for code, said, of_code in wrong_words(words, list(own), known if isinstance(known, dict) else {}):
            entry = child(messages, code)
            if entry is not None:
                yield Mistake(entry.key if of_code else entry.place, f"messages.{code}: {said}")


def _wrong_rules(said: dict[str, Any], root: Node | None, made: Iterable[Guard], kinds: Kinds) -> Iterator[Mistake]:
    """
    Returns the mistakes of rules whose settings do not go together with those of the policy.
    """
    named: dict[str, Guard] = {guard.name: guard for guard in (*made, *said["guards"])}
    classes = {cls.name: cls for cls in kinds}
    for rule, (number, node) in zip(said["rules"], numbered(rules(root)), strict=True):
        for name, own in rule.guards.items():
            entry = child(node, name)
            for wrong in wrong_together(classes[name].ruled(named.get(name), own)):
                if entry is not None:
                    yield Mistake(entry.place, f"tools.{number}.{wrong}")


def renamed(document: Document) -> list[str]:
    """
    Returns the older words of the named file that still work, each with the one that stands for it now.
    """
    return [
        str(Mistake(entry.key, f"tools.{number}.{old}: {old} is now `repeats: {now}`")).partition("\n")[0]
        for number, rule in enumerate(rules(document.parts[0]))
        for old, now in REPEATS.items()
        if (entry := child(rule, old)) is not None
    ]
