"""
The sections of the oracle, each a function that yields its entries.

Whatever is not a public name, the command line or a benchmark's table is reached by the functions at the end.
"""

import contextlib
import io
import json
import os
import re
import tempfile

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from guardrails import Envelope, JsonLines, Policy, SqliteStore

from .calls import DRAWN, SHIPPED
from .frozen import Entry, digest, short
from .sessions import Clock, enveloped, meaning, numbered, sessions, states


ROOT: Final = Path(__file__).parents[2]
DATA: Final = next(
    (folder / "shared/data" for folder in ROOT.parents if (folder / "shared/data").is_dir()),
    ROOT.parent / "shared/data",
)
GOLDEN: Final = ROOT / "tests/golden/signature.json"
EVENTS: Final = ROOT / "tests/hooks/events"


class Absent(Exception):
    """
    What a section needs is not here.
    """


def replay(name: str) -> Iterator[Entry]:
    """
    What the policy *name* decides about the recorded calls: of each session its calls that are not plainly allowed, and sums.
    """
    files = sorted(map(str, DATA.glob("*.jsonl.gz")))
    if not files:
        raise Absent("no recorded calls in `shared/data`")
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "decisions.jsonl")
        summary = command("replay", name, *files, "--decisions", str(made), "--json", "--quiet")[1]
        lines = made.read_text(encoding="utf-8").strip("\n").split("\n")
    calls: dict[tuple[str, str], list[str]] = defaultdict(list)
    judged: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in map(json.loads, lines):
        key = (one["source"], digest(one["session_id"]))
        said = "" if one["decision"] == "allow" else f"{one['decision']} {one['code']}"
        calls[key].append(said)
        if "recorded" in one:
            judged[key].append(f"{one['call_index']} {one['recorded']}")
    sums: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for (source, _), each in calls.items():
        for said in ("sessions", *(said or "allow" for said in each)):
            sums[source][said] += 1
    for source, counts in sums.items():
        lengths = "".join(f"{key} {len(each)}\n" for key, each in sorted(calls.items()) if key[0] == source)
        yield Entry(f"sum {source}", "sums of a source", dict(counts), None, digest(lengths))
    total = json.loads(summary)["total"]
    yield Entry("total", "judgement of a policy", None, {k: v for k, v in total.items() if isinstance(v, int | dict)})
    for (source, own), each in calls.items():
        if any(each):
            codes = {said: ranges([n for n, one in enumerate(each) if one == said]) for said in each if said}
            group = ", ".join(sorted({said.split()[-1] for said in codes}))
            wrong = judged.get((source, own))
            yield Entry(f"{source}/{own}", group, codes, digest("".join(wrong)) if wrong else None)


def ranges(numbers: list[int]) -> str:
    """
    Numbers that rise, in short: 1 4-9.
    """
    made: list[list[int]] = []
    for n in numbers:
        if made and n == made[-1][-1] + 1:
            made[-1] = [made[-1][0], n]
        else:
            made.append([n])
    return " ".join("-".join(map(str, each)) for each in made)


def vectors() -> Iterator[Entry]:
    """
    Signatures and hashes as records have them, and the envelopes that DESIGN shows.
    """
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    policy = Policy([])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "records.jsonl")
        with policy.session("vectors", records=JsonLines(str(file)), clock=Clock()) as session:
            for n, one in enumerate(golden["calls"]):
                session.call(one["tool"], one["arguments"], lambda *_: "x", id=f"call_{n}")
            for n, one in enumerate(golden["results"]):
                text = one["text"] * one["times"]
                session.call("result", {"n": n}, lambda *_, text=text: text, id=f"result_{n}")
        found = [json.loads(line) for line in file.read_text(encoding="utf-8").strip("\n").split("\n")]
    for record in found:
        names = ("sig", "result_hash", "result_hash_masked", "result_bytes")
        kept = {name: record[name] for name in names if name in record}
        text = digest(numbered(json.dumps(record), {}))
        yield Entry(f"{record['id']} {record['event']}", f"record {record['event']}", kept, sorted(record), text)
    for name, envelope in designed():
        yield enveloped(f"envelope {name}", envelope)


def designed() -> Iterator[tuple[str, Envelope]]:
    """
    The examples of the envelope, each by the calls that come to it.
    """
    clock = Clock()
    limited = Policy.load("default").session("designed", clock=clock)
    hotels, trip = [{"id": "h_1234"}], {"destination": "Shibuya, Tokyo", "max_price": 150}
    yield "success", limited.call("search_hotels", trip, lambda *_: hotels, id="a")
    yield "again", limited.call("search_hotels", trip, lambda *_: hotels, id="b")
    yield "duplicate", limited.call("search_hotels", trip, lambda *_: hotels, id="c")

    def slow(*_: Any) -> Any:
        raise TimeoutError("Supplier API did not respond within 5 seconds.")

    wrong: dict[str, Any] = {"check_in": "2026-01-01", "nights": "many"}
    yield "timeout", limited.call("book_hotel", {"id": 1}, slow, id="d")

    def book(check_in: str, nights: int) -> str:
        """Book."""
        return f"{check_in} {nights}"

    yield "validation", limited.wrap(book, returns="envelope")(**wrong)
    yield "empty", limited.call("search_flights", {"to": "HND"}, lambda *_: [], id="e")
    yield "cut", limited.call("read_log", {}, lambda *_: "line\n" * 20_000, id="f")
    for form in ("nested", "merged"):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "policy.yaml")
            file.write_text(json.dumps({"version": 1, "envelope": form, "budget": {"max_calls": 3}}), encoding="utf-8")
            own = Policy.load(file).session("s", clock=clock)
        for n in range(4):
            shown = {"output": f"{n}", "count": 1}
            yield f"{form} {n}", own.call("exec_shell", {"n": n}, lambda *_, shown=shown: shown, id=f"{n}")


def hooks() -> Iterator[Entry]:
    """
    What the hooks answer to the recorded events of each CLI, told twice, under two policies.
    """
    for file in sorted(EVENTS.glob("*.jsonl")):
        client = file.stem.partition("-")[0]
        events = [json.loads(line) for line in file.read_text(encoding="utf-8").strip("\n").split("\n")]
        for policy in ("default", "strict"):
            clock = Clock()
            with tempfile.TemporaryDirectory() as folder:
                for n, event in enumerate(events * 2):
                    clock.now += 1
                    said = hook_answer({**event, "transcript_path": ""}, client, policy, Path(folder), clock)
                    own = said.get("hookSpecificOutput", said)
                    refused = "deny" in (own.get("permissionDecision"), said.get("decision"))
                    reason = f"{own.get('permissionDecisionReason') or said.get('reason') or ''}"
                    added = f"{own.get('additionalContext') or said.get('systemMessage') or ''}"
                    # A sentence stands before the envelope of a refusal.
                    read = reason.partition("\n")[2] or reason or added
                    name, text = event["hook_event_name"], json.dumps(said, sort_keys=True)
                    told = {"keys": sorted([*said, *own]), **(meaning(read) if read else {})}
                    at = f"{file.stem} {policy} {n:02} {name}"
                    yield Entry(at, f"{client} {name}", {"refused": refused}, told, short(text))


def commands() -> Iterator[Entry]:
    """
    What each command prints with `--json`: its values are its meaning, its bytes its text.
    """
    with tempfile.TemporaryDirectory() as folder:
        records, store, model = (str(Path(folder, name)) for name in ("records.jsonl", "state.db", "model.json"))
        recorded(records, store)
        places = {"RECORDS": records, "STORE": store, "MODEL": model}
        for asked in DRAWN["commands"]:
            words = [places.get(word, word) for word in asked.split()]
            code, printed = command(*words, "--json")
            yield from flat(" ".join(words).replace(f"{folder}/", ""), code, normal(printed, folder))
        for asked in ("policy schema", "policy test --schema", f"report {records} --suggest"):
            code, printed = command(*asked.split())
            name = asked.replace(f"{folder}/", "")
            yield Entry(name, name.partition(" ")[0], code, None, short(normal(printed, folder)))
        # Its exit code says whether this machine has a sandbox.
        _, printed = command("doctor", "--json")
        yield Entry("doctor", "doctor", None, sorted(json.loads(printed)))


def flat(name: str, code: int, printed: str) -> Iterator[Entry]:
    """
    What a command printed, an entry for each key at the top.
    """
    yield Entry(name, name, code, None, digest(printed))
    try:
        found = json.loads(printed)
    except ValueError:
        return
    named = found.items() if isinstance(found, dict) else ((one.get("code") or one.get("key"), one) for one in found)
    for key, value in named:
        text = json.dumps(value, sort_keys=True)
        yield Entry(f"{name}: {key}", name, None, value if len(text) < 400 else digest(text))


def normal(printed: str, folder: str) -> str:
    """
    The same without what differs from run to run and from machine to machine.
    """
    printed = numbered(printed, {}).replace(folder, "FOLDER").replace(str(ROOT), "ROOT")
    moves = "seconds|calls_per_second|trained_at|written_at|version|created|at|id"
    printed = re.sub(rf'"({moves})": ("[^"]*"|[\d.e+-]+)', r'"\1": 0', printed)
    return re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:[\d.]+)?(Z|\+00:00)?", "WHEN", printed)


def recorded(records: str, store: str) -> None:
    """
    Records and states of forty workers whose tools time out, are used up, come back.
    """
    clock = Clock()
    sink, policy = JsonLines(records), Policy.load("default")
    with SqliteStore(store, clock=clock) as states:
        for worker in range(40):
            session = policy.session(f"worker-{worker}", records=sink, store=states, clock=clock)
            for n in range(30):
                clock.now += 7
                session.begin_turn()
                session.call(f"tool_{n % 4}", {"n": n // 3}, partial(_worked, worker, n), id=f"call_{worker}_{n}")
            session.close()
    sink.flush(60)
    sink.close()


def _worked(worker: int, n: int, *_: Any) -> Any:
    draw = int(digest(f"{worker} {n}"), 16) % 10
    if draw < 3:
        raise (TimeoutError("slow"), ConnectionError("refused"), PermissionError("no entry"))[draw]
    return {"rows": [n // 3], "has_more": True} if draw == 3 else [] if draw == 4 else {"rows": [n // 3, draw]}


def stories() -> Iterator[Entry]:
    """
    What each policy says to loops and to honest work.
    """
    from benchmarks.loops import stories, table

    policies = {name: policy for name, policy in table.policies().items() if "our" in name or "policy" in name}
    for name, policy in policies.items():
        for kind, told in (("loop", stories.LOOPS), ("honest", stories.HONEST)):
            counts = [table.said(policy, f"{name} {kind} {n}", story) for n, story in enumerate(told.values())]
            heard, refused = (sum(each) for each in zip(*counts, strict=True))
            yield Entry(f"{name}: {kind}", "sums", {"stories": len(counts), "heard": heard, "refused": refused})
            for story, (any_, denied) in zip(told, counts, strict=True):
                yield Entry(f"{name}: {kind}: {story}", f"{name}, {kind}", {"heard": any_, "refused": denied})


# What may move: each of these is one place to mend


def command(*words: str) -> tuple[int, str]:
    """
    The exit code of `guardrails WORDS` and what it printed; in this process.
    """
    import sys

    from guardrails.__main__ import main

    printed, before = io.StringIO(), sys.argv
    sys.argv = ["guardrails", *words]
    try:
        with contextlib.redirect_stdout(printed):
            main()
    except SystemExit as ended:
        return int(ended.code or 0), printed.getvalue()
    finally:
        sys.argv = before
    return 0, printed.getvalue()


def hook_answer(event: Mapping[str, Any], client: str, policy: str, folder: Path, clock: Clock) -> dict[str, Any]:
    """
    The answer of the hook of *client* to one *event*.
    """
    from guardrails.hooks.options import Options
    from guardrails.hooks.respond import respond

    options = Options(client=client, policy=policy, store=str(folder / "hooks.db"))
    said = json.loads(respond(json.dumps(event).encode(), options, clock=clock))
    return dict(said)


SECTIONS: Final[dict[str, Callable[[], Iterable[Entry]]]] = {
    **{f"replay-{name}": partial(replay, name) for name in SHIPPED},
    "sessions": sessions,
    "states": states,
    "vectors": vectors,
    "hooks": hooks,
    "commands": commands,
    "stories": stories,
}


def entries_of(section: str) -> tuple[list[Entry] | str, float]:
    """
    The entries of a *section*, or why it is skipped; and the seconds of processor time.
    """
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            entries: list[Entry] | str = [*SECTIONS[section]()]
    except Absent as absent:
        entries = str(absent)
    return entries, sum(os.times()[:4])
