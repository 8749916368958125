"""
Commands that look at things that change by themselves or are somewhere else: told from the program, its verb and its
options.

The rule goes by verbs (`get`, `status`, `logs`), since programs are without number. Files, sources and builds of this
machine are left out by name: they change only if somebody works on them.
"""

import re

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from guardrails.core.values.late_pattern import pattern
from guardrails.core.values.tool_name import TOKEN

from .contents import asks, code_waits, grows
from .programs import ACTS, ASKED, BUILDS, FILES, HTTP, LOOKERS, SERVICES, SETTINGS, SLEEPERS, TASKS
from .verbs import Kind, request, verb
from .words import Words, pipelines


MAX_WORDS: Final = 48
"""Words of one command that are read."""
MAX_DEPTH: Final = 8
"""Commands within commands: `sudo bash -c 'timeout 9 kubectl ...'`."""
MAX_RUNS: Final = 4
"""Commands that one other runs: `find -exec`, `parallel`."""
NOUNS: Final = 4
"""Words before a verb: `gcloud compute instance-groups managed list-instances`."""

_INTERPRETERS: Final = pattern(r"(?:python|pypy|node|ruby|perl|php|lua|rscript|java|julia)[\d.]*")
_SCRIPT: Final = pattern(
    r"(?!(?:[A-Za-z]:|/usr|/bin|/sbin|/opt|/snap|/nix|/etc|/home/linuxbrew)[/\\]).*/|.*\.ps1$", re.IGNORECASE
)
"""A program of the project's own: it is called by its path."""
_PACKED: Final = pattern(r"\.(?:exe|cmd|bat)$")
_WORD: Final = pattern(r"[A-Za-z][A-Za-z0-9]*(?:[-_:][A-Za-z0-9]+)*")
_TIME: Final = pattern(r"[\d$]")
_WAITS: Final = pattern(r"--?(?:watch|wait)(?:-\w[\w-]*)?(?:=(?!false|0|no).*)?", re.IGNORECASE)
_FOLLOWS: Final = pattern(r"-\w*[fF]|--follow.*|--retry")
_LOG: Final = pattern(r"\.(?:log|out|output|err)$|(?:^|/)logs?/", re.IGNORECASE)
_ASKS: Final = pattern(r"--?(?:list|describe|status|state|report|details?|show|info|health|progress|failed)")
"""Options that stand for a verb: `kafka-topics --list`, `hdfs dfsadmin -report`."""
_CODE: Final = pattern(r"-\w*[cepr]|--(?:eval|print|exec)")
"""Options of interpreters behind which the code itself stands."""
_KNOWN: Final = frozenset(name for name in SERVICES | HTTP | LOOKERS if len(name) > 1)
"""Programs that are one wherever they stand first."""
_OWN_NAME: Final = frozenset(
    {"wait", "await", "poll", "status", "progress", "health", "healthcheck", "probe", "monitor"}
)
_TESTS: Final = frozenset({"test", "tests", "spec"})


def script_waits(text: str, depth: int = 0) -> bool:
    """
    Returns whether a command in *text*, as a shell reads it, sleeps, or looks at a thing that changes by itself.
    """
    return depth <= MAX_DEPTH and any(_shows(stages, depth) for stages in pipelines(text))


def words_wait(words: Sequence[str]) -> bool:
    """
    Returns the same of one command that no shell splits again.
    """
    return _shows([list(words)], 0)


def _shows(stages: Sequence[Words], depth: int) -> bool:
    """
    Returns whether a pipeline looks, and does no more with what it sees than to show it.
    """
    kinds = [_kind(words[:MAX_WORDS], depth) for words in stages]
    return Kind.LOOKS in kinds and Kind.ACTS not in kinds


def _kind(words: Words, depth: int) -> Kind | None:  # noqa: C901  a case for each program
    """
    Returns LOOKS or ACTS, or None if neither is known.
    """
    if words[:1] == ["--"]:
        words = words[1:]
    if not words or depth > MAX_DEPTH or "--help" in words:
        return None
    program, rest = words[0], words[1:]
    name = _PACKED.sub("", re.split(r"[/\\]", program)[-1].lower())
    if name[:1] == "g" and name[1:] in ("timeout", "stdbuf", "nice", "env", "nohup", "tail", "sleep"):
        # What GNU's are called on another system.
        name = name[1:]
    if name in SLEEPERS or (name == "timeout" and rest[:1] == ["/t"]):
        return Kind.LOOKS if any(map(_TIME.search, rest)) else None
    if name in LOOKERS or rest[:1] == [{"kill": "-0", "read": "-t"}.get(name)]:
        return Kind.LOOKS
    if (within := _within(name, words, depth)) is not None:
        return next((kind for kind in within if kind is not None), None)
    if name not in FILES and any(map(_WAITS.fullmatch, rest)):
        return Kind.LOOKS
    if name == "tail":
        shown = any(map(_FOLLOWS.fullmatch, rest)) or any(_LOG.search(word) for word in rest if word[:1] != "-")
        return Kind.LOOKS if shown else None
    if name in HTTP:
        return request(rest)
    if asks(name, rest) or grows(name, rest):
        return Kind.LOOKS
    if name in ASKED and any(word in ASKED[name] for word, _, _ in islice(_bare(rest), 2)):
        return Kind.LOOKS
    if name in ACTS:
        return Kind.ACTS
    if name in FILES or name in BUILDS:
        return None
    if _INTERPRETERS.fullmatch(name):
        place = next((at for _, _, at in _bare(rest)), len(rest))
        if any(map(_CODE.fullmatch, rest[:place])):
            return Kind.LOOKS if any(map(code_waits, rest[place:])) else None
        return None if place == len(rest) else _own(rest[place], rest[place + 1 :], depth)
    if name in TASKS or (_SCRIPT.match(program) and name not in SERVICES):
        return _own(name, rest, depth)
    return Kind.LOOKS if _named_for_waiting(name) else _by_verb(name, rest, depth, lists=True)


def _within(name: str, words: Words, depth: int) -> list[Kind | None] | None:
    """
    Returns the kind of the commands that another runs: `sudo`, `timeout`, `bash -c`, `xargs`, `ssh`. Returns None if it
    runs none.
    """
    from guardrails.core.commands.wrappers import SHELLS, Inner, started

    rest = words[1:]
    if name in ("powershell", "pwsh", "cmd"):
        place = next((at for at, word in enumerate(rest) if word.lower() in ("-c", "-command", "/c")), len(rest))
        runs = [Inner(script=" ".join(rest[place + 1 :]))]
    else:
        runs = [run for run in islice(started(name, list(rest), None), MAX_RUNS) if run.words or run.script]
    if not runs and name in SHELLS:
        place = next((at for _, _, at in _bare(rest)), len(rest))
        # Without a script a shell runs what is piped in.
        return [Kind.ACTS if place == len(rest) else _own(rest[place], rest[place + 1 :], depth)]
    kinds = [
        _kind(list(run.words), depth + 1)
        if run.script is None
        else (Kind.LOOKS if script_waits(run.script, depth + 1) else None)
        for run in runs
    ]
    return kinds or None


def _own(name: str, rest: Words, depth: int) -> Kind | None:
    """
    For a script or a task of the project's own only words that leave no doubt are believed.
    """
    name = name.rpartition("/")[2].lower()
    if name in FILES or name in BUILDS:
        return None
    return Kind.LOOKS if _named_for_waiting(name) else _by_verb(name, rest, depth, lists=False)


def _named_for_waiting(name: str) -> bool:
    tokens = frozenset(TOKEN.findall(name))
    return not tokens.isdisjoint(_OWN_NAME) and tokens.isdisjoint(_TESTS)


def _by_verb(name: str, rest: Words, depth: int, *, lists: bool) -> Kind | None:  # noqa: C901  a case for each verb
    """
    Returns the kind by the verb of a command, which stands behind options and nouns; *lists*: `get` and the like are
    believed.

    A word behind an option may be its value. It is believed if no other word tells more, and *name* is a known service or
    the option is long and comes first.
    """
    guess: Kind | None = None
    service, happens, task, plain = name in SERVICES, False, False, True
    nouns: list[str] = []
    for word, doubtful, place in _bare(rest):
        if not _WORD.fullmatch(word):
            if not doubtful:
                break
            if service and " " in word:
                # `ansible web -a 'systemctl status web'`; what it is else nobody knows.
                plain, guess = False, Kind.LOOKS if script_waits(word, depth + 1) else guess
            continue
        kind = verb(word)
        if not lists and kind is Kind.TASK and word != "run":
            break
        if not lists and kind is Kind.LOOKS:
            # A list or a report of the project's own.
            kind = None
        if word in ("exec", "ssh", "shell", "rsh"):
            return _executed(rest, place, depth)
        if doubtful:
            if not task and (service or (lists and not nouns and rest[place - 1].startswith("--"))):
                guess = guess or (kind and (Kind.ACTS if kind in (Kind.ACTS, Kind.TASK) else Kind.LOOKS))
        elif kind is None:
            if word in SETTINGS or word in BUILDS or word in ASKED:
                return None
            if word in ("api", "rest") and lists:
                return request(rest[place + 1 :], everywhere=True)
            if lists and not nouns and word in _KNOWN and not service:
                # An unknown program runs a known one: `proxychains4 curl -s h/health`.
                return _kind(rest[place:], depth + 1)
            service = service or word in SERVICES
            lists = lists or service
            nouns.append(word)
            if len(nouns) > NOUNS:
                break
        elif kind is Kind.ACTS:
            return kind
        elif kind is Kind.TASK:
            task = task or not happens
        elif task and (kind is Kind.HAPPENS or word in FILES) and verb(rest[place - 1]) is not Kind.TASK:
            # `run view`, but `run IMAGE ps`.
            continue
        elif kind is Kind.HAPPENS:
            happens = True
        else:
            return Kind.LOOKS
    if happens:
        return Kind.LOOKS
    behind = rest[rest.index("--") + 1 :] if "--" in rest else []
    if behind and (lists or behind[0] in SERVICES):
        # `doppler run -- docker ps`, `minikube kubectl -- get pods`
        return _kind([*(noun for noun in nouns[-1:] if noun in SERVICES), *behind], depth + 1)
    if task and (guess is None or not service):
        return Kind.ACTS
    if guess is None and lists and ((service and nouns and plain) or any(map(_ASKS.fullmatch, rest))):
        # In doubt who asks a service, and acts in no way that is known, looks: `consul members`, `docker images`.
        return Kind.LOOKS
    return guess


def _executed(rest: Words, place: int, depth: int) -> Kind | None:
    """
    Returns the command that is run elsewhere by `exec [OPTION].. [NAME] COMMAND` or `ssh [OPTION].. HOST COMMAND`,
    which begins at *place*.
    """
    behind = rest[place + 1 :]
    script = next(
        (behind[at + 1] for at, word in enumerate(behind[:-1]) if word in ("-a", "-c", "-C", "--command")), None
    )
    if rest[place] in ("ssh", "shell") and script is not None:
        return Kind.LOOKS if script_waits(script, depth + 1) else None
    if rest[place] == "ssh":
        return _kind(rest[place:], depth + 1)
    if "--" in behind:
        return _kind(behind[behind.index("--") :], depth + 1)
    for word, _, at in islice(_bare(behind), 2):
        inner = behind[at + (word not in _KNOWN) :]
        kind = _kind(inner, depth + 1)
        if kind is not None or (inner and (inner[0] in FILES or inner[0] in BUILDS)):
            return kind
    return None


def _bare(words: Words) -> Iterator[tuple[str, bool, int]]:
    """
    Returns the words that are no options, up to `--`; whether each may be the value of an option, and its place.
    """
    doubtful = False
    for at, word in enumerate(words):
        if word == "--":
            return
        if word.startswith("-") and len(word) > 1:
            doubtful = "=" not in word
        else:
            yield word, doubtful, at
            doubtful = False
