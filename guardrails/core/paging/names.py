"""
The names by which results tell of their pages: the usual names of cursors, totals, flags and places, in any spelling.
"""

from enum import Enum, auto
from typing import Final

from guardrails.core.text.short_keys import cached_if_short
from guardrails.core.values.late_pattern import pattern


MAX_NAME: Final = 48
"""Characters; no name of the tables is longer."""
LISTS: Final = ("results", "items", "data", "rows", "matches", "hits", "entries", "records")
"""Where a result holds its matches; the first in this order counts."""
BESIDE: Final = frozenset(
    "errors failures warnings problems failed missing columns fields schema schemas dtypes headers tags labels categories facets suggestions"  # noqa: SIM905
    " options aggregations buckets permissions roles scopes steps next_steps".split()
)
"""Lists that a total is not of."""
BROKEN_WORDS: Final = frozenset({"partial", "incomplete", "truncated", "timed_out", "partial_results"})
"""States of a search that did not come to its end."""
_ODD: Final = pattern(r"[^A-Za-z0-9_.@$:\- ]")
_JOINTS: Final = pattern(r"[^a-z0-9]+")
_WORDS: Final = pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PLACE_WORDS: Final = frozenset({"token", "cursor", "marker", "offset", "continuation"})
_LINK_WORDS: Final = frozenset({"url", "uri", "link", "href", "key", "id", "index", "number"})
_ON_WORDS: Final = frozenset({"continuation", "continue", "resume", "resumption"})
_PART_WORDS: Final = frozenset(
    {"page", "chunk", "batch", "result", "results", "record", "records", "row", "part", "start"}
)
_MORE_WORDS: Final = frozenset({"has", "have", "is", "are", "can", "load", "fetch", "get", "there", "any"})
_ABOUT_WORDS: Final = frozenset(
    {"info", "information", "details", "detail", "help", "like", "about", "than", "options"}
)
_SHOWN_WORDS: Final = frozenset({"loaded", "shown", "returned", "fetched", "retrieved", "displayed", "listed"})
_PARTS_OF_TEXT: Final = frozenset({"word", "character", "char", "token", "byte", "view", "like", "retry", "reference"})
_SIDE_WORDS: Final = frozenset(
    "search page pages result results meta info aggregate query hits cursor cursors nav navigation view list listing set"  # noqa: SIM905
    " context window slice continuation stats statistics".split()
)
_TOTAL_WORDS: Final = frozenset(
    "total num number of count row rows result results item items record records hit hits match matches matched entry"  # noqa: SIM905
    " entries element elements available found matching estimated filtered overall".split()
)


class Kind(Enum):
    """
    The role of a member of a result in telling of its pages.
    """

    # By identity, as members are equal: that of `Enum` is Python code, and each name of a result asks for it.
    __hash__ = object.__hash__

    CURSOR = auto()
    """Where to go on; empty at the end."""
    NEXT = auto()
    """The same, if it stands beside matches: alone it is a step, a chapter, a link of a list."""
    MARK = auto()
    """A place in a listing that may be its end."""
    BACK = auto()
    LINK = auto()
    """Links with their relation, as in a header."""
    MORE = auto()
    """True: there is more; false: there is not."""
    CUT = auto()
    """True: the answer was shortened; false: it was not."""
    BROKEN = auto()
    """True: the search did not come to its end; false says nothing of further pages."""
    LEFT = auto()
    """How many are not shown."""
    WHOLE = auto()
    """True: this is all; false: it is not."""
    DONE = auto()
    """The same, if it stands beside matches: alone it is the state of a job."""
    LAST = auto()
    """A boolean says whether this is the last page, a number how many there are."""
    TOTAL = auto()
    TOTAL_OF = auto()
    """A total of what it names, which the matches need not be."""
    COUNT = auto()
    """A total, unless it counts or sums something else."""
    OFFSET = auto()
    START = auto()
    """An offset that may be counted from 1."""
    UNTIL = auto()
    LIMIT = auto()
    PAGE = auto()
    PAGE_FROM_0 = auto()
    PAGES = auto()
    SHOWN = auto()
    """How many are shown."""
    OF = auto()
    """A total, beside how many are shown or which page is."""
    RANGE = auto()
    """Which are shown of how many, in words: "1-10 of 120"."""
    PAGING = auto()
    """Holds the pages' own members."""
    ABOUT = auto()
    """Holds what is said about the result, pages among it."""
    INSIDE = auto()
    """Holds the result itself, as data or as text."""
    REMARK = auto()
    """A text about the result, or a list of such."""
    STATUS = auto()
    """May say in a word that the result is partial."""
    MONEY = auto()
    """Beside it, a bare `total` is an amount."""
    THING = auto()
    """Beside it, a bare `total` or `count` may be one of a thing's own."""


_AFTER_NEXT: Final = (
    "page cursor token link url uri href marker offset start skip batch position page_token page_cursor page_url page_uri "
    "page_link page_href page_number page_start page_offset page_params page_index cursor_mark continuation_token "
    "continuation batch_token records_url results results_url start_key partition_key row_key key_marker upload_id_marker "
    "version_id_marker record_name query_token search_after start_index page_results_url chunk segment_token"
)
_NAMES: Final = {
    Kind.CURSOR: " ".join(f"next_{name}" for name in _AFTER_NEXT.split())
    + " cursor_next page_next link_next odata_next_link x_next_page x_next_cursor x_next_token opc_next_page continuation_token"
    " continuation continuation_key continuation_url continue_from continue_token next_after next_before next_page_available"
    " next_page_exists resume_after resume_from resume_key x_ms_continuation page_state paging_state"
    " resume_token resumption_token last_evaluated_key after_cursor cursor_after continue",
    Kind.NEXT: "next next_id next_index next_line next_key next_row",
    Kind.MARK: "cursor scroll_id bookmark after end_cursor page_token pagination_token skip_token marker position",
    Kind.BACK: "previous prev previous_page prev_page previous_cursor prev_cursor previous_page_token prev_page_token"
    " previous_link prev_link previous_url prev_url prev_page_url previous_page_url back_token before",
    Kind.LINK: "link links",
    Kind.MORE: "has_more has_more_results has_more_items has_more_pages has_more_records has_more_data has_more_rows"
    " has_more_entries has_more_matches has_next has_next_page has_additional has_additional_results more_available"
    " more_results_available more_items_available more_results more_items more_pages more_data more_records more_rows"
    " is_more more is_more_available has_remaining items_remaining results_remaining",
    Kind.CUT: "truncated is_truncated was_truncated output_truncated results_truncated result_truncated list_truncated"
    " text_truncated content_truncated response_truncated data_truncated stdout_truncated body_truncated clipped is_clipped"
    " capped is_capped cut_off limit_reached limit_hit limit_exceeded limited results_limited reached_limit"
    " max_results_reached exceeded_transfer_limit exceeded_limit truncated_json",
    Kind.BROKEN: "partial is_partial partial_result partial_results partial_data partial_response partial_search incomplete incomplete_search search_incomplete is_incomplete"
    " incomplete_result incomplete_results incomplete_data timed_out is_timed_out has_timed_out terminated_early"
    " search_timed_out query_timed_out shards_failed failed_shards unreachable",
    Kind.LEFT: "omitted omitted_count num_omitted omitted_items omitted_results omitted_lines omitted_rows remaining_items"
    " remaining_item_count remaining_results remaining_rows remaining_records remaining_lines remaining_pages pages_remaining"
    " pages_left not_shown more_count truncated_count truncated_lines truncated_items truncated_rows",
    Kind.WHOLE: "is_complete results_complete is_last is_last_page last_page_reached is_final_page end_of_list end_of_results"
    " end_of_data end_of_file end_of_stream eof at_end is_end end_reached reached_end no_more no_more_results no_more_items"
    " no_more_pages is_exhaustive search_complete query_complete scan_complete listing_complete",
    Kind.DONE: "complete done final exhausted finished job_complete",
    Kind.LAST: "last last_page",
    Kind.TOTAL: "total_matches total_count total_results total_items total_records total_rows total_hits total_elements"
    " total_entries total_number total_found total_available total_results_available total_result_count total_item_count"
    " total_row_count total_record_count total_matching matches_total hits_total num_found number_of_results number_of_matches estimated_total"
    " estimated_total_hits nb_hits odata_count x_total_count x_total results_total items_total records_filtered full_count"
    " overall_count count_total number_matched num_matched total_matched filter_count filtered_count",
    Kind.TOTAL_OF: "total_docs total_documents total_objects total_size total_lines total_messages total_files total_issues"
    " total_users total_products total_posts total_events total_comments total_tickets total_orders",
    Kind.COUNT: "total count found num_results result_count results_count num_rows num_records num_hits num_entries num_matches match_count matches_count"
    " hits_count num_items item_count items_count record_count row_count",
    Kind.OFFSET: "offset skip skipped result_offset page_offset",
    Kind.START: "start start_at start_index starting_at start_line first_line first_index from begin",
    Kind.UNTIL: "to end end_index end_at last_index end_line until",
    Kind.LIMIT: "limit size per_page page_size max_results items_per_page hits_per_page rows_per_page results_per_page page_length"
    " page_limit rpp max_items records_per_page",
    Kind.PAGE: "page current_page page_number page_no page_num this_page",
    Kind.PAGE_FROM_0: "number page_index",
    Kind.PAGES: "pages total_pages page_count nb_pages num_pages number_of_pages max_page page_total pages_total pages_count",
    Kind.SHOWN: "returned shown displayed number_returned num_returned returned_count shown_count showing num_lines lines_shown lines_returned lines_read",
    Kind.OF: "of available matched",
    Kind.RANGE: "range content_range displaying shown_range",
    Kind.PAGING: "paging pagination page_info pager cursors pagination_info paging_info page_metadata paging_metadata"
    " pagination_metadata page_details page_data pagination_data page_context next_page_info truncation result_info results_info",
    Kind.ABOUT: "meta metadata list_metadata response_metadata search_metadata search_information info headers"
    " result_metadata results_metadata request_info queries summary response_headers list_meta envelope",
    Kind.INSIDE: "result response body payload output value json content contents structured_content structured stdout text embedded"
    " markdown collection list search search_results values",
    Kind.REMARK: "message messages note notes warning warnings hint hints notice notices footer caption detail details status_message",
    Kind.STATUS: "status state result_status results_status completeness",
    Kind.MONEY: "currency currency_code subtotal sub_total tax taxes vat shipping discount discounts tip amount amount_due"
    " balance order_id order_number invoice_id invoice_number cart_id receipt_id payment payment_method payments grand_total"
    " total_price total_amount score points votes passed",
    Kind.THING: "id name title sku uuid slug author isbn label price color brand",
}
_KINDS: Final = {name.replace("_", ""): kind for kind, names in _NAMES.items() for name in names.split()}
_KINDS.update(dict.fromkeys(LISTS, Kind.INSIDE))


def _spellings(name: str) -> tuple[str, ...]:
    words = name.split("_")
    camel = words[0] + "".join(word.title() for word in words[1:])
    return name, camel, camel[:1].upper() + camel[1:]


SPELLINGS: Final = frozenset(
    spelling for names in (*_NAMES.values(), " ".join(LISTS)) for name in names.split() for spelling in _spellings(name)
)
"""The usual spellings, by which a large object is searched without a walk through it."""


def usual_kind(key: str) -> Kind | None:
    """
    Returns the role of a member called *key* if it is one of the usual names.
    """
    return _KINDS.get(_JOINTS.sub("", key.lower()))


def sayable(name: str) -> str:
    """
    Returns *name* if each part of it is a usual one, which can be no order to the reader of a hint, else "".
    """
    if usual_kind(name) is not None or all(usual_kind(part) is not None for part in name.split(".")):
        return name
    return ""


@cached_if_short(4096, MAX_NAME)
def kind_of(key: str) -> Kind | None:
    """
    Returns the role of a member called *key*, by its letters alone. Returns None if it says nothing of pages.
    """
    if len(key) > MAX_NAME or _ODD.search(key):
        return None
    return usual_kind(key) or _by_words(key.rpartition(":")[2])


def speaks_of_pages(key: str) -> bool:
    """
    Returns whether an object called *key* beside matches is about them, by its words.
    """
    return len(key) <= MAX_NAME and not _SIDE_WORDS.isdisjoint(word.lower() for word in _WORDS.findall(key))


def _by_words(key: str) -> Kind | None:
    """
    Returns the meaning of a name by its words: `has_more_streams`, `hydra:next`, `X-WP-Total`, `num_rows_total`.
    """
    words = [word.lower() for word in _WORDS.findall(key)]
    if words[:1] == ["x"] and len(words) > 1:
        known = _KINDS.get("".join(words[1:])) or _KINDS.get("".join(words[2:]))
        return Kind.TOTAL if known is Kind.COUNT else known
    known = _KINDS.get("".join(words))
    if known is not None or len(words) < 2:
        return known
    first, last, rest = words[0], words[-1], set(words)
    if (first == "last" and words[1] == "evaluated") or (first in _ON_WORDS and last in _PLACE_WORDS | _LINK_WORDS):
        return Kind.CURSOR
    if first == "next" and "sync" not in rest:
        return Kind.CURSOR if last in _PLACE_WORDS or (last in _LINK_WORDS and words[1] in _PART_WORDS) else None
    if "more" in rest and (first in _MORE_WORDS or first == "more") and not rest & _ABOUT_WORDS:
        return Kind.CURSOR if last in _PLACE_WORDS or last in _LINK_WORDS else Kind.MORE
    if first == "all" and last in _SHOWN_WORDS:
        return Kind.WHOLE
    if last in {"truncated", "clipped"} and first != "not":
        return Kind.CUT
    if "total" in rest and rest <= _TOTAL_WORDS and (first == "total" or len(words) > 2):
        return Kind.TOTAL
    if (rest & {"total", "count"} and len(words) == 2 and not rest & _PARTS_OF_TEXT) or first in {"num", "number"}:
        return Kind.TOTAL_OF if rest - {"total", "count", "num", "number", "of"} else None
    return None
