"""
Whose a request over HTTP is: by headers that a gateway sets, or by a signed token.
"""

import argparse

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from guardrails.core.values.errors import PolicyError, needs


LEEWAY_S: Final = 10
"""By how much the clocks of who signs tokens and of this machine may differ."""
ASYMMETRIC: Final = [*(f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512)), "EdDSA"]
"""A secret that both sides know would let whoever checks tokens make them."""
Whose = tuple[str | None, str | None]
"""The user and the tenant, as far as they are asked for."""
Identity = Callable[[Mapping[str, str]], Whose | None]
"""Says by the headers of a request whose it is. None: nobody knows."""


def identity_of(options: argparse.Namespace) -> Identity:
    """
    Returns the rule for whose a request is, as *options* want it known. Raises PolicyError for keys that cannot be read.
    """
    if options.token_key is None:
        return partial(_by_headers, options)
    with needs("mcp", "`--token-key`"):
        import jwt

        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    try:
        text = Path(options.token_key).read_text()
        if "-----BEGIN" in text:
            return partial(_by_token, options, {None: load_pem_public_key(text.encode())})
        keys = {one.key_id: one.key for one in jwt.PyJWKSet.from_json(text).keys if one.key_type != "oct"}
        if not keys:
            raise ValueError("it has no public key")
        return partial(_by_token, options, keys if len(keys) > 1 else {None: next(iter(keys.values()))})
    except (OSError, ValueError, jwt.PyJWTError) as error:
        raise PolicyError([f"`--token-key {options.token_key}` cannot be read: {error}"]) from None


def _by_headers(options: argparse.Namespace, headers: Mapping[str, str]) -> Whose | None:
    user = options.user if options.identity_header is None else headers.get(options.identity_header)
    tenant = options.tenant if options.tenant_header is None else headers.get(options.tenant_header)
    lacks = (options.identity_header and not user) or (options.tenant_header and not tenant)
    return None if lacks else (user, tenant)


def _by_token(options: argparse.Namespace, keys: Mapping[str | None, Any], headers: Mapping[str, str]) -> Whose | None:
    import jwt

    scheme, _, token = headers.get("authorization", "").strip().partition(" ")
    if scheme.lower() != "bearer":
        return None
    try:
        claims = jwt.decode(
            token.strip(),
            # Of several keys the token names one.
            keys.get(jwt.get_unverified_header(token.strip()).get("kid"), keys.get(None)),
            algorithms=ASYMMETRIC,
            audience=options.token_audience,
            issuer=options.token_issuer,
            leeway=LEEWAY_S,
            options={"require": ["exp", "aud", *(["iss"] if options.token_issuer else [])]},
        )
    except (jwt.PyJWTError, TypeError, ValueError):
        return None
    user = claims.get(options.identity_claim)
    tenant = options.tenant if options.tenant_claim is None else claims.get(options.tenant_claim)
    texts = [user, *([] if options.tenant_claim is None else [tenant])]
    return (user, tenant) if all(isinstance(one, str) and one for one in texts) else None
