"""
Whose a request over HTTP is: by headers that a gateway sets, or by a signed token.
"""

from collections.abc import Mapping
from email.message import Message
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from guardrails.core.values.errors import needs
from guardrails.mcp.proxy.options import Options, UsageError


LEEWAY_S: Final = 10
"""By how much the clocks of who signs tokens and of this machine may differ."""
SUBJECT: Final = "sub"
_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_CURVES: Final = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}


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


class Identity(Protocol):
    """
    Says by the headers of a request whose it is. Raises StrangerError.
    """

    def __call__(self, headers: "Message[str, str]") -> Whose: ...


def identity_of(options: Options) -> Identity:
    """
    Returns the rule for whose a request is, as *options* want it known. Raises UsageError for keys that cannot be read.
    """
    return partial(_by_headers, options) if options.token_key is None else _Tokens(options, options.token_key)


def _by_headers(options: Options, headers: "Message[str, str]") -> Whose:
    user, tenant = (
        given if name is None else headers.get(name)
        for given, name in ((options.user, options.identity_header), (options.tenant, options.tenant_header))
    )
    if (options.identity_header and not user) or (options.tenant_header and not tenant):
        raise StrangerError("a header that says whose the request is")
    return Whose(user, tenant)


class _Tokens:
    """
    Bearer tokens (JWT, RFC 7519) that somebody signs with one of the keys in the file *path*.
    """

    def __init__(self, options: Options, path: str) -> None:
        with needs("mcp", "`--token-key`"):
            import jwt

            from cryptography.hazmat.primitives.serialization import load_pem_public_key
        self._jwt = jwt
        self._options = options
        self._user = options.identity_claim or SUBJECT
        try:
            text = Path(path).read_text()
            if "-----BEGIN" in text:
                key = load_pem_public_key(text.encode())
                self._keys: list[tuple[str | None, Any, tuple[str, ...]]] = [(None, key, _algorithms(key))]
            else:
                # A secret that both sides know would let whoever checks tokens make them.
                found = [one for one in jwt.PyJWKSet.from_json(text).keys if one.key_type != "oct"]
                self._keys = [(one.key_id, one.key, (one.algorithm_name,)) for one in found]
        except (OSError, ValueError, jwt.PyJWTError) as error:
            raise UsageError(f"`--token-key {path}` cannot be read: {error}") from None
        if not any(algorithms for _, _, algorithms in self._keys):
            raise UsageError(f"`--token-key {path}` has no public key that tokens are signed for (RSA, EC, Ed25519)")

    def __call__(self, headers: "Message[str, str]") -> Whose:
        scheme, _, token = (headers.get("Authorization") or "").strip().partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise StrangerError("a bearer token")
        claims = self._claims(token.strip())
        tenant = self._options.tenant_claim
        return Whose(_named(claims, self._user), self._options.tenant if tenant is None else _named(claims, tenant))

    def _claims(self, token: str) -> Mapping[str, Any]:
        options = self._options
        try:
            wanted = self._jwt.get_unverified_header(token).get("kid")
            keys = [one for one in self._keys if wanted is None or one[0] in (None, wanted)]
            if len(keys) != 1:
                raise StrangerError("a token that says by which of the keys it is signed (`kid`)")
            _, key, algorithms = keys[0]
            claims: dict[str, Any] = self._jwt.decode(
                token,
                key,
                algorithms=list(algorithms),
                audience=options.token_audience,
                issuer=options.token_issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "aud", *(["iss"] if options.token_issuer else [])]},
            )
        except self._jwt.PyJWTError as error:
            raise StrangerError(f"a valid token: {error}") from None
        return claims


def _algorithms(key: Any) -> tuple[str, ...]:
    with needs("mcp", "`--token-key`"):
        from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa

    if isinstance(key, rsa.RSAPublicKey):
        return _RSA
    if isinstance(key, ec.EllipticCurvePublicKey):
        return (_CURVES[key.curve.name],) if key.curve.name in _CURVES else ()
    return ("EdDSA",) if isinstance(key, (ed25519.Ed25519PublicKey, ed448.Ed448PublicKey)) else ()


def _named(claims: Mapping[str, Any], name: str) -> str:
    said = claims.get(name)
    if isinstance(said, str) and said:
        return said
    raise StrangerError(f"a token with the claim `{name}`")
