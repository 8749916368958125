"""
The model file: plain JSON that is checked as a whole before anything of it is used.
"""

import hashlib
import math

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import orjson

from guardrails.core.values.errors import ModelError

from .factors import MAX_EDGES
from .model import Declared, Golden, RetryModel
from .profiles import profile_of
from .scoring import SEPARATOR, TOOL, Term
from .shrinkage import After, Corrections, Count
from .spec import FORMAT as SPEC_FORMAT
from .spec import KEYS, FeatureSpec, FeatureSpecError


FORMAT: Final = "guardrails.retry-model"
VERSION: Final = 2
MAX_BYTES: Final = 8 * 1024 * 1024
MAX_WEIGHT: Final = 20.0
"""Log odds; a weight beyond it comes of a broken fit, and no evidence would ever outweigh it."""
MAX_TERMS: Final = 100
GOLDEN_TOLERANCE: Final = 1e-12
_KNOWN: Final = frozenset(
    {
        "format",
        "version",
        "spec",
        "intercept",
        "terms",
        "declared",
        "evidence",
        "corrections",
        "correction_runs",
        "golden",
        "profiles",
        "training",
        "sha256",
    }
)


def canonical(body: Mapping[str, Any]) -> bytes:
    """
    Returns the bytes that the hash is of: *body* without its `sha256`, keys sorted, no spaces.
    """
    return orjson.dumps({key: value for key, value in body.items() if key != "sha256"}, option=orjson.OPT_SORT_KEYS)


def body_of(
    spec: FeatureSpec,
    intercept: float,
    terms: Iterable[Term],
    *,
    declared: Declared,
    evidence: Mapping[tuple[str, str], float],
    corrections: Mapping[tuple[str, str], tuple[float, float]],
    correction_runs: Mapping[int, After] | None = None,
    golden: Iterable[Golden] = (),
    profiles: Iterable[Mapping[str, Any]] = (),
    training: Mapping[str, Any],
) -> dict[str, Any]:
    """
    Returns the JSON value of a model file, its hash included.
    """
    body: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "spec": spec.document(),
        "intercept": intercept,
        "terms": [{"on": list(on), "w": dict(sorted(weights.items()))} for on, weights in terms],
        "declared": declared._asdict(),
        "evidence": [[tool, error, n] for (tool, error), n in sorted(evidence.items())],
        **corrections_said(corrections, correction_runs or {}),
        "golden": [list(vector) for vector in golden],
        "profiles": list(profiles),
        "training": dict(training),
    }
    return sealed(body)


def corrections_said(
    counts: Mapping[tuple[str, str], tuple[float, float]], after: Mapping[int, After]
) -> dict[str, Any]:
    """
    Returns the entries of a model file that say `Corrections` of *counts* and *after*.
    """
    return {
        "corrections": [[tool, error, *count] for (tool, error), count in sorted(counts.items())],
        "correction_runs": [[level, *count] for level, count in sorted(after.items())],
    }


def sealed(body: Mapping[str, Any]) -> dict[str, Any]:
    """
    Returns *body* with the hash of its contents.
    """
    return {**body, "sha256": hashlib.sha256(canonical(body)).hexdigest()}


def text_of(body: Mapping[str, Any]) -> bytes:
    """
    Returns the bytes of a model file. Raises ModelError if the file would be too large to be read again.
    """
    text = orjson.dumps(body, option=orjson.OPT_APPEND_NEWLINE)
    _check_size(len(text))
    return text


def body_in(text: bytes, wanted: str, what: str) -> dict[str, Any]:
    """
    Returns the JSON object in the bytes of a model file whose `format` is *wanted*. Raises ModelError if the bytes are
    no *what*.
    """
    try:
        body = orjson.loads(text)
    except ValueError as error:
        raise ModelError(f"not JSON ({error}): the file is cut off or no model") from None
    if not isinstance(body, dict) or body.get("format") != wanted:
        raise ModelError(f"no {what}: `format` is not `{wanted}`")
    return body


def what_to_do(body: Mapping[str, Any], known: int) -> str:
    """
    Returns the advice for a model whose version is not the *known* one.
    """
    version = body.get("version")
    newer = type(version) is int and version > known
    return "upgrade this library, or train it again" if newer else "train it again"


def parse(text: bytes) -> RetryModel:
    """
    Returns the model in the bytes of a file. Raises ModelError saying what is wrong with it.
    """
    _check_size(len(text))
    body = body_in(text, FORMAT, "retry model")
    version = body.get("version")
    if type(version) is not int or version != VERSION:
        raise ModelError(
            f"a model file of version `{version!r:.20}`, this library reads {VERSION}: {what_to_do(body, VERSION)}"
        )
    if body.keys() != _KNOWN:
        odd = ", ".join(f"`{key:.40}`" for key in sorted(body.keys() ^ _KNOWN))
        raise ModelError(f"a model file has exactly the keys of its format; see {odd}")
    digest = hashlib.sha256(canonical(body)).hexdigest()
    if body["sha256"] != digest:
        raise ModelError("the hash does not fit: the file was changed or damaged")
    try:
        model = _model(body, digest)
    except (FeatureSpecError, TypeError, ValueError, LookupError, AttributeError) as error:
        raise ModelError(f"the model cannot be read: {error}") from None
    check_golden(body["golden"], partial(_comes_out, model))
    return model


def _check_size(size: int) -> None:
    if size > MAX_BYTES:
        raise ModelError(f"a model file of {size:,} bytes (at most {MAX_BYTES:,})")


def _model(body: Mapping[str, Any], digest: str) -> RetryModel:
    if not isinstance(body["spec"], dict) or body["spec"].get("format") != SPEC_FORMAT:
        raise ModelError("the model has no feature specification")
    spec = FeatureSpec.parse(body["spec"])
    terms = body["terms"]
    if not isinstance(terms, list) or len(terms) > MAX_TERMS:
        raise ModelError(f"`terms` is a list of at most {MAX_TERMS}")
    known = {*KEYS, *spec.by_name}
    declared = Declared(*(finite(f"declared.{name}", body["declared"][name]) for name in Declared._fields))
    if declared.strength <= 0:
        raise ModelError("`declared.strength` is not above 0")
    _check_profiles(body["profiles"])
    return RetryModel(
        spec,
        finite("intercept", body["intercept"]),
        tuple(_term(place, term, known) for place, term in enumerate(terms)),
        declared,
        {(_text(tool), _text(error)): _count(n) for tool, error, n in body["evidence"]},
        corrections=_corrections(body),
        sha256=digest,
        body=body,
    )


def _corrections(body: Mapping[str, Any]) -> Corrections:
    counts = {
        (_text(tool), _text(error)): Count(_count(n), min(_count(n), _count(s)))
        for tool, error, n, s in body["corrections"]
    }
    runs = {
        _level(level): After(_count(n), min(_count(n), _count(s)), _count(expected))
        for level, n, s, expected in body["correction_runs"]
    }
    return Corrections(counts, runs)


def _term(place: int, said: Any, known: set[str]) -> Term:
    where = f"terms.{place}"
    if not isinstance(said, dict) or said.keys() != {"on", "w"}:
        raise ModelError(f"{where} has exactly `on` and `w`")
    on, weights = said["on"], said["w"]
    if not isinstance(on, list) or not on or len(set(on)) != len(on) or TOOL in on[1:]:
        raise ModelError(f"{where}: `on` names factors, each once, `{TOOL}` first")
    if unknown := [name for name in on if name not in known]:
        raise ModelError(f"{where}: unknown factor `{unknown[0]!s:.40}`")
    if not isinstance(weights, dict):
        raise ModelError(f"{where}: `w` maps levels to weights")
    parts = len(on) - 1
    for key, weight in weights.items():
        finite(f"{where}.{key:.80}", weight)
        if key.count(SEPARATOR) < parts:
            raise ModelError(f"{where}: `{key:.80}` has not a level for each of its factors")
    return Term(tuple(on), weights)


def _comes_out(model: RetryModel, vector: Sequence[Any]) -> bool:
    tool, error, context, action, p = vector
    made = model.probability(_text(tool), _text(error), context, action)
    return 0 < made < 1 and abs(made - p) <= GOLDEN_TOLERANCE


def check_golden(golden: Any, comes_out: Callable[[Sequence[Any]], bool]) -> None:
    """
    Raise ModelError unless each vector of *golden*, one at least, *comes_out*; one that is no vector raises TypeError or
    ValueError there.
    """
    if not isinstance(golden, list) or not golden:
        raise ModelError("the model has no golden vectors, so nothing shows that it is read as it was written")
    for vector in golden:
        try:
            fits = comes_out(vector)
        except (TypeError, ValueError):
            fits = False
        if not fits:
            raise ModelError("a golden vector does not come out: the model is not read as it was written")


def _check_profiles(profiles: Any) -> None:
    if not isinstance(profiles, list) or not all(isinstance(entry, dict) for entry in profiles):
        raise ModelError("`profiles` is a list of objects")
    for entry in profiles:
        profile_of(entry)


def finite(where: str, value: Any) -> float:
    """
    Returns *value* if it is a weight. Raises ModelError naming *where* it stands if it is none.
    """
    if type(value) not in (int, float) or not math.isfinite(value) or abs(value) >= MAX_WEIGHT:
        if where == "declared.strength" and type(value) in (int, float) and math.isfinite(value):
            return float(value)
        raise ModelError(f"`{where}` is not a number between -{MAX_WEIGHT:g} and {MAX_WEIGHT:g}: `{value!r:.40}`")
    return float(value)


def _count(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value) or value < 0:
        raise ModelError(f"counts are numbers from 0 on, not `{value!r:.40}`")
    return float(value)


def _level(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= MAX_EDGES + 1:
        raise ModelError(f"a level is a number from 0 to {MAX_EDGES + 1}, not `{value!r:.40}`")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ModelError(f"a name is text, not `{value!r:.40}`")
    return value
