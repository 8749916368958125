"""
What the names of members say, and the form of an object: which of its members each question is about.

Names are known by their words, in any spelling (`nextPageToken`, `next_page_token`). The results of a tool mostly have the same members of
the same types, so that a form is made once, and a later result is looked at only where its form says that there is something to see.
"""

from itertools import islice
from typing import Any, Final, NamedTuple

from guardrails.core.text.short_keys import Cache, cached_if_short
from guardrails.core.values.late_pattern import pattern
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
_BESIDES: Final = pattern(r"[\W_]+")
_LOOSE: Final = pattern("(?i)next|last|more|done|complete|continue|total|count|size|start|limit|found")
_ASIDE: Final = pattern(
    r"""(?x)(?:(?:time_)?(?:took|elapsed|taken|duration|latency)(?:_time)?|(?:response|query|execution|exec|processing|search|request)_(?:time|duration))
(?:_(?:in_)?(?:ms|millis|milliseconds|us|ns|s|secs?|seconds?))?|now|timestamp|ts|as_of|(?:server|current)_time|progress|usage|attempts?|retries|rate_limit
|(?:generated|fetched|retrieved|queried|checked|requested|responded|served|searched|asked|evaluated|computed)(?:_(?:at|on|time))?|traceparent|total_matches
|(?:x_)?(?:amzn?_)?(?:request|req|trace|span|correlation)(?:_?id)?|_?meta|(?:calls|requests|searches|queries|credits|tokens|quota|budget)_(?:used|left|remaining|made|so_far|count)
|(?:remaining|used|total|num)_(?:calls|requests|searches|queries|credits)|(?:search_)?(?:query|terms?)|q|search|keywords?|pattern|filters?|page|limit|offset|per_page
|page_size|size|start|query_summary|next_action_hint|is_complete"""
)
"""Names of what a result says of itself, or repeats of the request: times, durations, ids of the request, counts of progress, the query."""
FAULTS: Final = pattern(r"(?i)error|warning|issue|problem|failure|violation|conflict|finding|diagnostic")
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


class About(NamedTuple):
    """
    What a name says of its member.
    """

    word: str
    """The last word of the name, in small letters."""
    aside: bool
    """It speaks of the request, or of the result itself."""
    dull: bool
    """It is no news, whatever it says: what is aside, an id, a count of faults."""
    state: bool
    """It may say that the work goes on."""
    more: str | None
    """A sign of completeness, as a word of the table."""
    loose: bool
    """Of many meanings, as a sign of completeness."""


@cached_if_short(2048, 64)
def about(name: str) -> About:
    """
    Returns what a *name* says of its member.
    """
    known = flat(name)
    word, brief = known.rpartition("_")[2], len(name) <= 40
    aside = brief and _ASIDE.fullmatch(known) is not None
    dull = aside or FAULTS.search(name) is not None or word in ("id", "uuid", "number")
    more = _SIGNS.get(_BESIDES.sub("", name).lower()) if brief else None
    return About(word, aside, dull, not word or word in STATES or word in OVER, more, bool(_LOOSE.fullmatch(name)))


@cached_if_short(2048, 64)
def flat(name: str) -> str:
    """
    Returns the words of a *name* in small letters: `next_page` of `nextPage`.
    """
    return "_".join(TOKEN.findall(name)).lower()


NAMELESS: Final = About("", False, False, True, None, False)
"""What is said of a value that is no member."""


class Form(NamedTuple):
    """
    What there is to see in objects of the same names and types: keys in their order, some with what their names say.
    """

    quiet: bool
    """It is neither a carrier, nor the holder of one text, nor a failure."""
    carries: bool
    """It may be a carrier, or the holder of one text."""
    rows: object
    """The list by a usual name; without one what is no key."""
    tells: tuple[Any, ...]
    """What may say that it is a failure."""
    states: tuple[tuple[Any, About], ...]
    """What may say that the work goes on."""
    news: tuple[tuple[Any, About], ...]
    """What may be news but for lists and objects, texts last, since they take longer."""
    lists: tuple[tuple[Any, About], ...]
    objects: tuple[tuple[Any, About], ...]
    signs: tuple[tuple[Any, About], ...]
    """What may tell of completeness."""
    remarks: tuple[Any, ...]
    """Texts beside what there is."""
    scalars: tuple[Any, ...]
    """All but lists, objects and what is aside."""
    stated: tuple[Any, ...]
    """Those of them that are states."""


def form_of(value: dict[Any, Any]) -> Form:
    """
    Returns the form of an object, of its first `MEMBERS` members.
    """
    if len(value) <= MEMBERS:
        form: Form = _FORMS[(*value, *map(type, value.values()))]
    else:
        form = _form((*islice(value, MEMBERS), *map(type, islice(value.values(), MEMBERS))))
    return form


def _form(parts: tuple[Any, ...]) -> Form:
    keys, kinds = parts[: len(parts) // 2], parts[len(parts) // 2 :]
    members = [(key, about(str(key)), kind) for key, kind in zip(keys, kinds, strict=True)]
    scalars = [(key, says, kind) for key, says, kind in members if kind is not list and kind is not dict]
    news = [(key, says, kind) for key, says, kind in scalars if not says.dull and kind not in _NO_NEWS]
    texts = [(key, says) for key, says, kind in scalars if kind is str]
    own = tuple(key for key, says, _ in scalars if not says.aside)
    lists = tuple((key, says) for key, says, kind in members if kind is list)
    rows, tells = {key for key, _ in lists}, tuple(key for key in keys if key in TELLS)
    carries = len(keys) == 1 or not CARRIERS.isdisjoint(keys)
    return Form(
        not carries and not tells,
        carries,
        next((name for name in ROWS if name in rows), _NO_KEY),
        tells,
        tuple((key, says) for key, says, kind in scalars if says.state and kind in (str, bool, int)),
        tuple((key, says) for key, says, _ in sorted(news, key=lambda member: member[2] is str)),
        lists,
        tuple((key, says) for key, says, kind in members if kind is dict),
        tuple((key, says) for key, says, _ in members if says.more is not None),
        tuple(key for key, says in texts if key in REMARKS and says.more is None),
        own,
        tuple(key for key in own if str(key).lower() in STATES),
    )


def _cost(parts: tuple[Any, ...]) -> int | None:
    keys = parts[: len(parts) // 2]
    return sum(map(len, keys)) if all(type(key) is str for key in keys) else None


_NO_KEY: Final = object()
_NO_NEWS: Final = (bool, type(None))
_FORMS: Final = Cache(_form, 1_024, 2_048, _cost)
