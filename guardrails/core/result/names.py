"""
What the names of members say, and the form of an object: which of its members each question is about.

Names are known by their words, in any spelling (`nextPageToken`, `next_page_token`). The results of a tool mostly have the same members of
the same types, so that a form is made once, and a later result is looked at only where its form says that there is something to see.
"""

import re

from itertools import islice
from operator import itemgetter
from typing import Any, Final

from guardrails.core.text.short_keys import Cache, cached_if_short
from guardrails.core.values.names import TOKEN


MEMBERS: Final = 2_048
"""Of an object that are looked at."""
_MORE: Final = """
flag hasmore hasmoreresults hasmoreitems hasmorepages hasmorerecords hasnext hasnextpage more moreresults moreavailable moreresultsavailable moreitems morepages nextpageavailable
cut truncated istruncated outputtruncated resultstruncated incomplete incompleteresults isincomplete partial ispartial partialresults timedout exceededtransferlimit limitexceeded clipped
end islast islastpage lastpage last isfinalpage iscomplete complete done eof endoflist endofresults
cursor next nextpage nextcursor nexttoken nextpagetoken nextpagecursor nextlink odatanextlink nexturl nextpageurl nexturi nextmarker nextcontinuationtoken continuationtoken continuation continue resumptiontoken lastevaluatedkey nextrecordsurl nextoffset nextstart nextset nextbatch nextkeymarker nextpartitionkey scrollid searchafter
left remaining remainingitems remainingitemcount remainingresults omitted omittedcount notshown morecount
total totalmatches totalcount totalresults totalitems totalrecords totalrows totalhits totalelements numfound nbhits
bare total count found size totalsize matches available totalpages pages pagecount page pagenumber currentpage pageindex offset skip start startat startindex limit perpage pagesize
"""
"""
What a name tells of completeness by its value. flag: true, there is more; cut: true, it is not whole; end: false, there is more; cursor: a
value, there is more; left: a count of what is not shown; total: of all matches; bare: nothing is sure.
"""
_SIGNS: Final = {name: kind for kind, *names in map(str.split, _MORE.strip().split("\n")) for name in names}
_BESIDES: Final = re.compile(r"[\W_]+")
_LOOSE: Final = re.compile("(?i)next|last|more|done|complete|continue|total|count|size|start|limit|found")
_ASIDE: Final = re.compile(
    r"""(?x)(?:(?:time_)?(?:took|elapsed|taken|duration|latency)(?:_time)?|(?:response|query|execution|exec|processing|search|request)_(?:time|duration))
(?:_(?:in_)?(?:ms|millis|milliseconds|us|ns|s|secs?|seconds?))?|now|timestamp|ts|as_of|(?:server|current)_time|progress|usage|attempts?|retries|rate_limit
|(?:generated|fetched|retrieved|queried|checked|requested|responded|served|searched|asked|evaluated|computed)(?:_(?:at|on|time))?|traceparent|total_matches
|(?:x_)?(?:amzn?_)?(?:request|req|trace|span|correlation)(?:_?id)?|_?meta|(?:calls|requests|searches|queries|credits|tokens|quota|budget)_(?:used|left|remaining|made|so_far|count)
|(?:remaining|used|total|num)_(?:calls|requests|searches|queries|credits)|(?:search_)?(?:query|terms?)|q|search|keywords?|pattern|filters?|page|limit|offset|per_page
|page_size|size|start|query_summary|next_action_hint|is_complete"""
)
"""Names of what a result says of itself, or repeats of the request: times, durations, ids of the request, counts of progress, the query."""
FAULTS: Final = re.compile(r"(?i)error|warning|issue|problem|failure|violation|conflict|finding|diagnostic")
STATES: Final = frozenset(("status", "state", "phase", "stage", "progress", "percent", "percentage"))
OVER: Final = frozenset(("ready", "finished", "done", "completed"))
"""Names of a flag that says whether the work is over."""
REMARKS: Final = frozenset("message msg note detail description text result output content response".split())  # noqa: SIM905
"""Names of a text that is all there is, or a remark beside what there is."""
ROWS: Final = ("results", "items", "data", "rows", "matches", "hits", "entries", "records")
CARRIERS: Final = frozenset("content isError is_error structuredContent structured_content text".split())  # noqa: SIM905
"""An object without any of them is no result of MCP."""
ERRORS: Final = ("error", "errors", "error_message", "errorMessage")
STATUS: Final = "status status_code statusCode http_status httpStatus"
EXITS: Final = "exit_code exitCode returncode return_code exit_status"
TELLS: Final = frozenset(
    (*ERRORS, *STATUS.split(), *EXITS.split(), "isError", "is_error", "ok", "success", "code", "state")
)
"""Names of what may say that an object is a failure."""


@cached_if_short(2048, 64)
def flat(name: str) -> str:
    """
    Returns the words of a *name* in small letters: `next_page` of `nextPage`.
    """
    return "_".join(TOKEN.findall(name)).lower()


_NO_KEY: Final[Any] = object()
_NO_NEWS: Final = (bool, type(None))
_STATED: Final = (str, bool, int)


class About:
    """
    What a *name* says of its member.
    """

    def __init__(self, name: str) -> None:
        known, brief = flat(name), len(name) <= 40
        self.word = word = known.rpartition("_")[2]
        """The last word of the name, in small letters."""
        self.aside = brief and _ASIDE.fullmatch(known) is not None
        """It speaks of the request, or of the result itself."""
        self.dull = self.aside or FAULTS.search(name) is not None or word in ("id", "uuid", "number")
        """It is no news, whatever it says: what is aside, an id, a count of faults."""
        self.state = not word or word in STATES or word in OVER
        """It may say that the work goes on."""
        self.more = _SIGNS.get(_BESIDES.sub("", name).lower()) if brief else None
        """A sign of completeness, as a word of the table."""
        self.loose = _LOOSE.fullmatch(name) is not None
        """Of many meanings, as a sign of completeness."""


about: Final = cached_if_short(2048, 64)(About)
NAMELESS: Final = About("")
"""What is said of a value that is no member."""

Members = tuple[tuple[Any, About], ...]


class Form:
    """
    What there is to see in objects of the same names and types: keys in their order, some with what their names say. *parts* are the names,
    and behind them as many types.
    """

    def __init__(self, parts: tuple[Any, ...]) -> None:
        keys, kinds = parts[: len(parts) // 2], parts[len(parts) // 2 :]
        members = [(key, about(str(key)), kind) for key, kind in zip(keys, kinds, strict=True)]
        plain = [(key, says, kind) for key, says, kind in members if kind is not list and kind is not dict]
        news = [(key, says, kind is str) for key, says, kind in plain if not says.dull and kind not in _NO_NEWS]
        self.lists: Members = tuple((key, says) for key, says, kind in members if kind is list)
        self.objects: Members = tuple((key, says) for key, says, kind in members if kind is dict)
        rows = {key for key, _ in self.lists}
        self.rows = next((name for name in ROWS if name in rows), _NO_KEY)
        """The list by a usual name; without one what is no key."""
        self.tells = tuple(key for key in keys if key in TELLS)
        """What may say that it is a failure."""
        self.carries = len(keys) == 1 or not CARRIERS.isdisjoint(keys)
        """It may be a carrier, or the holder of one text."""
        self.quiet = not self.carries and not self.tells
        """It is neither of them, nor a failure."""
        self.states: Members = tuple((key, says) for key, says, kind in plain if says.state and kind in _STATED)
        """What may say that the work goes on."""
        self.news: Members = tuple((key, says) for key, says, _ in sorted(news, key=itemgetter(2)))
        """What may be news but for lists and objects, texts last, since they take longer."""
        self.signs: Members = tuple((key, says) for key, says, _ in members if says.more is not None)
        """What may tell of completeness."""
        self.remarks = tuple(key for key, says, kind in plain if kind is str and key in REMARKS and says.more is None)
        """Texts beside what there is."""
        self.scalars = tuple(key for key, says, _ in plain if not says.aside)
        """All but lists, objects and what is aside."""
        self.stated = tuple(key for key in self.scalars if str(key).lower() in STATES)
        """Those of them that are states."""


def form_of(value: dict[Any, Any]) -> Form:
    """
    Returns the form of an object, of its first `MEMBERS` members.
    """
    if len(value) <= MEMBERS:
        form: Form = _FORMS[(*value, *map(type, value.values()))]
    else:
        form = Form((*islice(value, MEMBERS), *map(type, islice(value.values(), MEMBERS))))
    return form


def _cost(parts: tuple[Any, ...]) -> int | None:
    keys = parts[: len(parts) // 2]
    return sum(map(len, keys)) if all(type(key) is str for key in keys) else None


_FORMS: Final = Cache(Form, 1_024, 2_048, _cost)
