"""
What the names of members say, and the form of an object: which of its members each question is about.

Names are known by their words, in any spelling (`nextPageToken`, `next_page_token`). The results of a tool mostly have the same members of
the same types, so that a form is made once, and a later result is looked at only where its form says that there is something to see.
"""

from itertools import islice
from typing import Any, Final

from guardrails.core.values.caches import Cache, cached_if_short, pattern
from guardrails.core.values.names import TOKEN


_MORE: Final = """
flag hasmore hasmoreresults hasmoreitems hasmorepages hasmorerecords hasnext hasnextpage more moreresults moreavailable moreresultsavailable moreitems morepages nextpageavailable
cut truncated istruncated outputtruncated resultstruncated incomplete incompleteresults isincomplete partial ispartial partialresults timedout exceededtransferlimit limitexceeded clipped
end islast islastpage lastpage last isfinalpage iscomplete complete eof endoflist endofresults
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
_LOOSE: Final = pattern("(?i)next|last|more|done|complete|continue|total|count|size|start|limit|found")
_ASIDE: Final = r"""(?x)(?:(?:time_)?(?:took|elapsed|taken|duration|latency)(?:_time)?|(?:response|query|execution|exec|processing|search|request)_(?:time|duration))
(?:_(?:in_)?(?:ms|millis|milliseconds|us|ns|s|secs?|seconds?))?|now|timestamp|ts|as_of|(?:server|current)_time|progress|usage|attempts?|retries|rate_limit
|(?:generated|fetched|retrieved|queried|checked|requested|responded|served|searched|asked|evaluated|computed)(?:_(?:at|on|time))?|traceparent|total_matches
|(?:x_)?(?:amzn?_)?(?:request|req|trace|span|correlation)(?:_?id)?|_?meta|(?:calls|requests|searches|queries|credits|tokens|quota|budget)_(?:used|left|remaining|made|so_far|count)
|(?:remaining|used|total|num)_(?:calls|requests|searches|queries|credits)|(?:search_)?(?:query|terms?)|q|search|keywords?|pattern|filters?|page|limit|offset|per_page
|page_size|size|start|query_summary|next_action_hint|is_complete"""
"""Names of what a result says of itself, or repeats of the request: times, durations, ids of the request, counts of progress, the query."""
FAULTS: Final = pattern(r"(?i)error|warning|issue|problem|failure|violation|conflict|finding|diagnostic")
STATES: Final = frozenset(("status", "state", "phase", "stage", "progress", "percent", "percentage"))
OVER: Final = frozenset(("ready", "finished", "done", "completed"))
"""Names of a flag that says whether the work is over."""
REMARKS: Final = frozenset("message msg note detail description text result output content response".split())  # noqa: SIM905
"""Names of a text that is all there is, or a remark beside what there is."""
ROWS: Final = ("results", "items", "data", "rows", "matches", "hits", "entries", "records")
CARRIERS: Final = {"content", "isError", "is_error", "structuredContent", "text", "_meta", "resultType"}
"""An object without any of them is no result of MCP."""
ERRORS: Final = ("error", "errors", "error_message", "errorMessage")
STATUS: Final = ("status", "status_code", "statusCode", "http_status", "httpStatus")
EXITS: Final = ("exit_code", "exitCode", "returncode", "return_code", "exit_status")
TELLS: Final = frozenset((*ERRORS, *STATUS, *EXITS, "isError", "is_error", "ok", "success", "code"))
"""Names of what may say that an object is a failure."""


@cached_if_short(2048, 64)
def flat(name: str) -> str:
    """
    Returns the words of a *name* in small letters: `next_page` of `nextPage`.
    """
    return "_".join(TOKEN.findall(name)).lower()


class About:
    """
    What a *name* says of its member.
    """

    def __init__(self, name: str) -> None:
        known, brief = flat(name), 0 < len(name) <= 40
        self.word = word = known.rpartition("_")[2]
        """The last word of the name, in small letters."""
        self.aside = brief and pattern(_ASIDE).fullmatch(known) is not None
        """It speaks of the request, or of the result itself."""
        self.dull = self.aside or FAULTS.search(name) is not None or word in ("id", "uuid", "number")
        """It is no news, whatever it says: what is aside, an id, a count of faults."""
        self.state = not word or word in STATES or word in OVER
        """It may say that the work goes on."""
        self.more = _SIGNS.get(known.replace("_", "")) if brief else None
        """A sign of completeness, as a word of the table."""
        self.loose = _LOOSE.fullmatch(name) is not None
        """Of many meanings, as a sign of completeness."""


about: Final = cached_if_short(2048, 64)(About)
NAMELESS: Final = About("")
"""What is said of a value that is no member."""


class Form:
    """
    What there is to see in objects of the same names and types: keys in their order, some with what their names say. *parts* are the names,
    and behind them as many types.
    """

    def __init__(self, parts: tuple[Any, ...]) -> None:
        keys, kinds = parts[: len(parts) // 2], parts[len(parts) // 2 :]
        members = [(key, about(str(key)), kind) for key, kind in zip(keys, kinds, strict=True)]
        plain = [(key, says, kind) for key, says, kind in members if kind is not list and kind is not dict]
        self.lists = tuple((key, says) for key, says, kind in members if kind is list)
        self.objects = tuple((key, says) for key, says, kind in members if kind is dict)
        self.holders = (*self.lists, *self.objects)
        self.rows = next((name for name in ROWS if name in dict(self.lists)), None)
        """The list by a usual name."""
        self.tells = tuple(key for key in keys if key in TELLS)
        """What may say that it is a failure."""
        self.carries = [kind for kind in kinds if kind is not type(None)] == [str] or not CARRIERS.isdisjoint(keys)
        """It may be a carrier, or the holder of one text."""
        self.signs = tuple((key, says) for key, says, _ in members if says.more is not None)
        """What may tell of completeness."""
        self.remarks = tuple(key for key, says, kind in plain if kind is str and key in REMARKS and says.more is None)
        """Texts beside what there is."""
        self.scalars = tuple(sorted(((key, says) for key, says, _ in plain), key=lambda one: not one[1].state))
        """All but lists and objects: first what may say that the work goes on."""
        self.facts = tuple(key for key, says in self.scalars if not says.aside)
        """Those of them that are not aside."""
        self.stated = tuple(key for key in self.facts if str(key).lower() in STATES)
        """Those of them that are states."""


def form_of(value: dict[Any, Any]) -> Form:
    """
    Returns the form of an object, of its first 2,048 members.
    """
    some = value if len(value) <= 2_048 else dict(islice(value.items(), 2_048))
    return _FORMS[(*some, *map(type, some.values()))]


_FORMS: Final[dict[Any, Form]] = Cache(Form, 1_024, 4_096)
