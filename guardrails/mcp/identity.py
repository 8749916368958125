"""
Whose a request over HTTP is: by headers that a gateway sets, or by a signed token.
"""

import argparse

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from guardrails.core.values.errors import PolicyError, needs


LEEWAY_S: Final = 10
"""By how much the clocks of who signs tokens and of this machine may differ."""
ASYMMETRIC: Final = [f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512)] + ["EdDSA"]
"""A secret that both sides know would let whoever checks tokens make them."""


class StrangerError(Exception):
    """
    Nobody knows whose the request is; the text says why.
    """


class Whose(NamedTuple):
    """
    Who asks, as far as it is asked for.
    """

    user: str | None
    tenant: str | None


Identity = Callable[[Mapping[str, str]], Whose]
"""Says by the headers of a request whose it is. Raises StrangerError."""


def identity_of(options: argparse.Namespace) -> Identity:
    """
    Returns the rule for whose a request is, as *options* want it known. Raises PolicyError for keys that cannot be read.
    """
    if options.token_key is None:
        return partial(_by_headers, options)
    return partial(_by_token, options, _keys(options.token_key))


def _by_headers(options: argparse.Namespace, headers: Mapping[str, str]) -> Whose:
    user, tenant = (
        given if name is None else headers.get(name)
        for given, name in ((options.user, options.identity_header), (options.tenant, options.tenant_header))
    )
    if (options.identity_header and not user) or (options.tenant_header and not tenant):
        raise StrangerError("a header that says whose the request is")
    return Whose(user, tenant)


def _keys(path: str) -> dict[str | None, Any]:
    """
    The public keys in the file *path*, by their ids.
    """
    with needs("mcp", "`--token-key`"):
        import jwt

        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    try:
        text = Path(path).read_text()
        if "-----BEGIN" in text:
            return {None: load_pem_public_key(text.encode())}
        keys = {one.key_id: one.key for one in jwt.PyJWKSet.from_json(text).keys if one.key_type != "oct"}
    except (OSError, ValueError, jwt.PyJWTError) as error:
        raise PolicyError([f"`--token-key {path}` cannot be read: {error}"]) from None
    if not keys:
        raise PolicyError([f"`--token-key {path}` has no public key that tokens are signed for"])
    return keys


def _by_token(options: argparse.Namespace, keys: Mapping[str | None, Any], headers: Mapping[str, str]) -> Whose:
    import jwt

    scheme, _, token = headers.get("authorization", "").strip().partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise StrangerError("a bearer token")
    required = ["exp", "aud", *(["iss"] if options.token_issuer else [])]
    try:
        wanted = jwt.get_unverified_header(token.strip()).get("kid")
        key = keys.get(wanted, keys.get(None)) if wanted is not None or len(keys) > 1 else next(iter(keys.values()))
        if key is None:
            raise StrangerError("a token that says by which of the keys it is signed (`kid`)")
        claims = jwt.decode(
            token.strip(),
            key,
            algorithms=ASYMMETRIC,
            audience=options.token_audience,
            issuer=options.token_issuer,
            leeway=LEEWAY_S,
            options={"require": required},
        )
    except (jwt.PyJWTError, TypeError, ValueError) as error:
        raise StrangerError(f"a valid token: {error}") from None
    tenant = options.tenant_claim
    return Whose(_claim(claims, options.identity_claim), options.tenant if tenant is None else _claim(claims, tenant))


def _claim(claims: Mapping[str, Any], name: str) -> str:
    said = claims.get(name)
    if isinstance(said, str) and said:
        return said
    raise StrangerError(f"a token with the claim `{name}`")
