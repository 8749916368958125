"""
Tokens that an envelope adds to ten usual results, in each form: python -m benchmarks.envelope_tokens

No tokenizer is needed: a token is taken for four bytes of JSON, rounded. The results are those of one agent that works under the policy
`default`; the figures of 0.2 are by the same count (git ee055c9d).
"""

from typing import Any, Final

from guardrails import Policy, Success


def timeout(*_: Any) -> Any:
    raise TimeoutError("no answer within 5 seconds")


HOTELS: Final = [{"id": f"h_{n}", "name": f"Hotel {n}", "price": 90 + n} for n in range(8)]
PAGE: Final = {"items": HOTELS, "total": 90, "next_cursor": "abc"}
FILE: Final = "\n".join(f"line {n} of a file that is read" for n in range(40))
CASES: Final[tuple[tuple[str, str, dict[str, Any], Any, int], ...]] = (
    ("an edit that says `ok`", "edit_file", {"path": "src/app.py", "old": "a = 1", "new": "a = 2"}, "ok", 46),
    ("a file", "read_file", {"path": "src/app.py"}, FILE, 49),
    ("a command's output", "exec_shell", {"command": "pytest -q"}, "12 passed in 0.31s", 40),
    ("a whole list", "search_hotels", {"city": "Kyoto", "max_price": 150}, HOTELS, 70),
    ("a page of more", "search_hotels", {"city": "Nara"}, PAGE, 64),
    ("nothing found", "search_hotels", {"city": "Atlantis"}, [], 73),
    ("a made object", "create_ticket", {"title": "Broken lamp"}, {"id": 7, "created": True}, 39),
    ("a job that runs on", "get_job", {"id": 3}, {"status": "running"}, 35),
    ("a timeout", "fetch_rates", {"base": "EUR"}, timeout, 82),
    ("a result that is cut", "read_file", {"path": "big.log"}, "x" * 100_000, 81),
)
"""Of each: a name, the call, what it gives, and the tokens that 0.2 added."""


def tokens(text: str) -> int:
    return round(len(text.encode()) / 4)


def added(form: Any) -> list[int]:
    """
    Returns the tokens that an envelope in *form* adds to each result, of a failure all of it.
    """
    policy = Policy.load("default", envelope=form)
    session = policy.session("benchmark", clock=lambda: 1_800_000_000.0)
    made = []
    for _, tool, arguments, result, _ in CASES:
        execute = result if callable(result) else lambda *_, value=result: Success(value)
        envelope = session.call(tool, arguments, execute)
        rendered = envelope.render()
        own = "" if not envelope.ok else rendered.payload.decode() if rendered.text is None else rendered.text
        made.append(tokens(envelope.to_json()) - tokens(own))
    return made


if __name__ == "__main__":
    print("| result | 0.2 | nested | merged | quiet |\n|---|---|---|---|---|")
    for case, *each in zip(CASES, added("nested"), added("merged"), added("quiet"), strict=True):
        print("|", " | ".join(map(str, (case[0], case[4], *each))), "|")
