"""
What faults that look like success look like: answers of tools, beside the honest ones that they are taken for.

Each form is one answer of one tool with something wrong in it, and the answer of the same tool that has nothing wrong and looks most
alike. The sign of a form is where it can be known: in the result, against what may be declared of the tool, or nowhere.
"""

import json

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from guardrails import FailureRule, ResultClassifier, Tool


OWN: Final = "A-17"
OTHER: Final = "B-03"


class Form(NamedTuple):
    """
    One way in which a fault shows.
    """

    flaw: str
    tool: str
    answer: Any
    honest: Any


def order(**changed: Any) -> dict[str, Any]:
    """
    An order as it should be, but for what was *changed*.
    """
    whole = {
        "id": OWN,
        "status": "open",
        "total": 40.5,
        "lines": [{"sku": "x1", "amount": 2}],
        "version": 7,
        "updated_at": "2026-01-05T10:00:00Z",
    }
    return {name: value for name, value in {**whole, **changed}.items() if value is not ...}


def rows(count: int, owner: str = OWN) -> list[dict[str, Any]]:
    """
    Orders of a customer.
    """
    return [{"id": f"A-{number}", "customer": owner, "total": 10.0 + number} for number in range(1, count + 1)]


def listed(count: int, **more: Any) -> dict[str, Any]:
    """
    An answer of `list_orders`.
    """
    return {"items": rows(count), **more}


NGINX: Final = (
    "<html>\r\n<head><title>503 Service Temporarily Unavailable</title></head>\r\n<body>\r\n"
    "<center><h1>503 Service Temporarily Unavailable</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"
)
LOGIN: Final = (
    "<!DOCTYPE html><html><head><title>Sign in</title></head><body><form action='/login'>"
    "<input name='password' type='password'></form></body></html>"
)
ENVOY: Final = "upstream connect error or disconnect/reset before headers. reset reason: connection failure"
ORDER: Final = order()
DONE: Final = {"ok": True, "id": OWN}
PAGE: Final = "<html><head><title>Order A-17</title></head><body><h1>Order A-17</h1><p>open, 40.50</p></body></html>"

NOTHING: Final[tuple[Any, ...]] = (
    [],
    {"items": []},
    {"items": [], "total": 0},
    "",
    None,
    "No results.",
    {"items": None},
)

FORMS: Final[tuple[Form, ...]] = (
    *(
        Form("no_op", "set_status", answer, honest)
        for answer, honest in (
            (DONE, DONE),
            ("Done.", "Done."),
            (None, None),
            (order(), order(status="closed")),
            ({"ok": True, "modified": 0}, {"ok": True, "modified": 1}),
            ({"acknowledged": True, "matchedCount": 1, "modifiedCount": 0}, {"acknowledged": True, "matchedCount": 1, "modifiedCount": 1}),
            ({"rows_affected": 0}, {"rows_affected": 1}),
            ({**DONE, "dry_run": True}, {**DONE, "dry_run": False}),
            ("UPDATE 0", "UPDATE 1"),
            ("No changes were made.", "The status was changed."),
        )
    ),
    *(
        Form("stale", "get_order", answer, ORDER)
        for answer in (
            order(version=5, status="draft", updated_at="2026-01-02T08:00:00Z"),
            order(status="draft"),
            order(version=5, stale=True),
            order(version=5, from_cache=True, age_s=86_400),
            order(version=5, warning="served from a cache of yesterday"),
        )
    ),
    *(
        Form("schema", "get_order", answer, ORDER)
        for answer in (
            order(id=..., order_id=OWN),
            order(total="40.50 EUR"),
            order(total=None),
            order(lines=None),
            order(lines={"sku": "x1", "amount": 2}),
            order(status=3),
            {"data": ORDER},
            [ORDER],
            "id=A-17; status=open; total=40.5",
            json.dumps(ORDER)[:60],
            {},
        )
    ),
    *(
        Form("partial", "list_orders", answer, listed(12))
        for answer in (
            listed(5),
            rows(5),
            listed(5, total=12),
            listed(5, has_more=True),
            listed(5, next_cursor="eyJvIjo1fQ"),
            listed(5, partial=True),
            listed(5, truncated=True),
            listed(5, timed_out=True),
            listed(5, _shards={"total": 3, "successful": 2, "failed": 1}),
            listed(5, warnings=["2 of 3 regions did not answer"]),
            "A-1, A-2, A-3, A-4, A-5\n(showing 5 of 12)",
        )
    ),
    *(
        Form("empty", "list_orders", answer, answer)
        for answer in NOTHING
    ),
    Form("empty", "list_orders", {"items": [], "timed_out": True}, {"items": [], "timed_out": False}),
    Form("empty", "list_orders", {"items": [], "message": "the index is being rebuilt"}, {"items": [], "message": ""}),
    *(
        Form("error_page", "get_order", answer, honest)
        for answer, honest in (
            (NGINX, PAGE),
            (LOGIN, PAGE),
            (ENVOY, "A-17: open"),
            ("Service Unavailable", "A-17: open"),
            ("", "A-17: open"),
            ("<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>", "<Order><Id>A-17</Id></Order>"),
            ({"message": "Service Unavailable"}, ORDER),
            ({"fault": {"faultstring": "Gateway Timeout"}}, ORDER),
            ({"error": "upstream timed out"}, ORDER),
            ({"status": 503, "message": "Service Unavailable"}, ORDER),
            ({"success": False, "message": "try again later"}, {"success": True, **ORDER}),
            ({"errors": [{"message": "upstream timed out"}], "data": None}, {"data": {"order": ORDER}}),
            ("Error: upstream timed out", "A-17: open"),
        )
    ),
    *(
        Form("other_entity", "get_order", answer, honest)
        for answer, honest in (
            (order(id=OTHER), ORDER),
            (order(id=OTHER, total=9.0, lines=[]), order(id=OWN.lower())),
            ({"order": order(id=OTHER)}, {"order": ORDER}),
            (json.dumps(order(id=OTHER)), json.dumps(ORDER)),
            (order(id=..., customer="eve"), order(id=..., customer="ann")),
            ("Order B-03 is open.", "Order A-17 is open."),
        )
    ),
)  # fmt: skip
"""The honest answer of some is the very same: nothing in the result can tell them apart."""

CHANGING: Final = frozenset({"set_status"})
ARGUMENTS: Final[Mapping[str, dict[str, Any]]] = {
    "get_order": {"order_id": OWN},
    "list_orders": {"customer": OWN},
    "set_status": {"order_id": OWN, "status": "closed"},
}
SIGNS: Final = ResultClassifier(
    error_when=(
        *(FailureRule(field=name, equals=True) for name in ("stale", "from_cache", "dry_run", "partial", "timed_out")),
        *(FailureRule(field=name, equals=0) for name in ("modified", "modifiedCount", "rows_affected")),
        FailureRule(field="error", present=True),
        FailureRule(field="errors", present=True),
        FailureRule(field="_shards.failed", at_least=1),
        FailureRule(equals=("UPDATE 0", "No changes were made.")),
    ),
    text_matches=("(?i)^(<html>\\s*<head>)?<title>50\\d ", "(?i)^(error|service unavailable|upstream connect error)"),
)
"""What a careful person who has met some of it declares by fields and words."""


def undeclared(form: Form) -> Tool:
    """
    The tool of *form*, as most people declare it.
    """
    return Tool(name=form.tool, read_only=form.tool not in CHANGING)


def by_signs(form: Form) -> Tool:
    """
    The same with `SIGNS`.
    """
    return replace(undeclared(form), result=SIGNS)


def by_form(form: Form) -> Tool:
    """
    The same with the form of its honest answers as well, and with each argument that they repeat.
    """
    rules = [*SIGNS.error_when, FailureRule(unfit=form_of(form.honest))]
    for name, given in ARGUMENTS[form.tool].items():
        rules += [FailureRule(field=path, other_than=name) for path in repeated(form.honest, given)[:1]]
    return replace(undeclared(form), result=replace(SIGNS, error_when=tuple(rules)))


def form_of(value: Any) -> dict[str, Any]:
    """
    The JSON Schema that a server would publish for answers like *value*: types, and what is never missing.
    """
    if isinstance(value, str) and value[:1] == "{":
        return form_of(json.loads(value))
    if isinstance(value, dict):
        members = {name: form_of(member) for name, member in value.items()}
        return {"type": "object", "required": [*members], "properties": members}
    if isinstance(value, list):
        return {"type": "array", "items": form_of(value[0]) if value else {}}
    kinds = {str: "string", bool: "boolean", int: "number", float: "number"}
    return {"type": kinds[type(value)]} if type(value) in kinds else {}


def repeated(value: Any, given: str) -> list[str]:
    """
    Where an honest answer says what it was *given*.
    """
    if isinstance(value, str) and value[:1] == "{":
        return repeated(json.loads(value), given)
    if not isinstance(value, dict):
        return []
    here = [name for name, member in value.items() if isinstance(member, str) and member.upper() == given.upper()]
    return here + [f"{name}.{path}" for name, member in value.items() for path in repeated(member, given)]
