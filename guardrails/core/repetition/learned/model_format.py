"""
The file of a repeat model: plain JSON that is checked as a whole before anything of it is used.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

import orjson

from guardrails.core.retries.model_format import GOLDEN_TOLERANCE, body_in, check_golden, finite, sealed, what_to_do
from guardrails.core.retries.scoring import SEPARATOR, Term
from guardrails.core.values.errors import ModelError

from .features import FACTORS, VERSION, Levels
from .model import DEFAULT, Golden, RepeatModel


FORMAT: Final = "guardrails.repeat-model"
MAX_BYTES: Final = 256 * 1024
SHIPPED: Final = Path(__file__).parent / "model.json"
_FEATURES: Final = {"version": VERSION, "factors": dict(FACTORS)}
_KNOWN: Final = frozenset(
    {"format", "version", "features", "intercept", "terms", "deny_at", "golden", "training", "sha256"}
)
_PAIR: Final = 2


def body_of(
    intercept: float, terms: Iterable[Term], deny_at: float, *, golden: Iterable[Levels], training: Mapping[str, Any]
) -> dict[str, Any]:
    """
    Returns the JSON value of a model file, its hash included; *golden* are levels whose probabilities are written down.
    """
    terms = list(terms)
    made = RepeatModel(intercept, terms, deny_at)
    return sealed(
        {
            "format": FORMAT,
            "version": 1,
            "features": _FEATURES,
            "intercept": intercept,
            "terms": [{"on": list(on), "w": dict(sorted(weights.items()))} for on, weights in terms],
            "deny_at": deny_at,
            "golden": [[list(levels), made.probability(levels)] for levels in golden],
            "training": dict(training),
        }
    )


def parse(text: bytes) -> RepeatModel:
    """
    Returns the model in the bytes of a file. Raises ModelError saying what is wrong with it.
    """
    if len(text) > MAX_BYTES:
        raise ModelError(f"a repeat model of {len(text)} bytes (at most {MAX_BYTES})")
    body = body_in(text, FORMAT, "repeat model")
    if body.get("version") != 1:
        raise ModelError(
            f"a repeat model of version `{body.get('version')!s:.20}`, this library reads 1: {what_to_do(body, 1)}"
        )
    if set(body) != _KNOWN:
        odd = ", ".join(sorted(map(str, set(body) ^ _KNOWN)))
        raise ModelError(f"a repeat model has exactly {', '.join(sorted(_KNOWN))}; see {odd:.200}")
    if body["features"] != _FEATURES:
        raise ModelError("the model was trained on other features than this library computes: train it again")
    if body["sha256"] != sealed(body)["sha256"]:
        raise ModelError("the hash of the model does not fit: the file was changed or is damaged")
    deny_at = body["deny_at"]
    if type(deny_at) not in (int, float) or not 0 < deny_at <= _PAIR:
        raise ModelError(f"`deny_at` is a probability above 0, or 2 for never: `{deny_at!r:.40}`")
    if not isinstance(body["training"], dict):
        raise ModelError(f"`training` names data and figures: `{body['training']!r:.40}`")
    if not isinstance(body["terms"], list) or len(body["terms"]) > len(FACTORS) ** 2:
        raise ModelError("`terms` is a list of one term for each factor or pair of factors")
    terms = [_term(at, said) for at, said in enumerate(body["terms"])]
    model = RepeatModel(
        finite("intercept", body["intercept"]), terms, float(deny_at), name=str(body["sha256"])[:12], body=body
    )
    check_golden(body["golden"], partial(_comes_out, model))
    return model


def text_of(body: Mapping[str, Any]) -> bytes:
    """
    Returns the bytes of a model file.
    """
    return orjson.dumps(body, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


@lru_cache(maxsize=64)
def repeat_model(path: str) -> RepeatModel:
    """
    Returns the model in the file *path*, or the shipped one if that is `default`; read once in each process.

    Raises ModelError if the file cannot be read or is no good.
    """
    file = SHIPPED if path == DEFAULT else Path(path)
    try:
        with file.open("rb") as opened:
            return parse(opened.read(MAX_BYTES + 1))
    except OSError as error:
        raise ModelError(f"the repeat model `{path}` cannot be read: {error.strerror or error}") from None
    except ModelError as error:
        raise ModelError(f"the repeat model `{path}` cannot be used: {error}") from None


def _term(place: int, said: Any) -> Term:
    where = f"terms.{place}"
    if not isinstance(said, dict) or said.keys() != {"on", "w"}:
        raise ModelError(f"{where} has exactly `on` and `w`")
    on, weights = said["on"], said["w"]
    if not isinstance(on, list) or not 1 <= len(on) <= _PAIR or any(type(name) is not str for name in on):
        raise ModelError(f"{where}: `on` names one factor or two")
    if unknown := [name for name in on if name not in FACTORS]:
        raise ModelError(f"{where}: unknown factor `{unknown[0]:.40}`")
    if len(set(on)) != len(on) or not isinstance(weights, dict):
        raise ModelError(f"{where}: `on` names each factor once, `w` maps levels to weights")
    for key, weight in weights.items():
        finite(f"{where}.{key:.40}", weight)
        parts = key.split(SEPARATOR)
        fits = len(parts) == len(on) and all(
            part.isascii() and part.isdigit() and len(part) <= _PAIR and int(part) < FACTORS[name]
            for part, name in zip(parts, on, strict=True)
        )
        if not fits:
            raise ModelError(f"{where}: `{key:.40}` is no level of `{SEPARATOR.join(on)}`")
    return Term(tuple(on), weights)


def _comes_out(model: RepeatModel, vector: Sequence[Any]) -> bool:
    levels, p = Golden(*vector)
    return abs(model.probability(_levels(levels)) - p) <= GOLDEN_TOLERANCE


def _levels(value: Sequence[int]) -> Levels:
    found = tuple(
        level for level, radix in zip(value, FACTORS.values(), strict=True) if type(level) is int and 0 <= level < radix
    )
    if len(found) != len(FACTORS):
        raise ValueError("no such levels")
    return found
