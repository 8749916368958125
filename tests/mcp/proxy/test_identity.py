"""
Whose a request is that comes over HTTP, where signed tokens say it.
"""

import json
import time

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guardrails.mcp.command import main
from tests.tables import table

from .test_listen import HELLO, Front, listen
from .test_remote import Server, far


jwt = pytest.importorskip("jwt")
serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
asymmetric = pytest.importorskip("cryptography.hazmat.primitives.asymmetric")

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa  # noqa: E402


pytestmark = pytest.mark.system


__all__ = ["far", "listen"]
US = "https://tools.example.com/mcp"
POLICY = "scopes:\n  user: {budget: {max_calls: 2}}\n  tenant: {budget: {max_calls: 3}}\n"
KEY = ec.generate_private_key(ec.SECP256R1())
OTHER = ec.generate_private_key(ec.SECP256R1())
Listen = Callable[..., Front]


def pem(key: Any) -> str:
    text: bytes = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return text.decode()


def token(key: Any = KEY, algorithm: str = "ES256", kid: str | None = None, **claims: Any) -> str:
    said = {"sub": "ann", "org": "acme", "aud": US, "exp": time.time() + 86_400, **claims}
    said = {name: value for name, value in said.items() if value is not None}
    return str(jwt.encode(said, key, algorithm, headers={} if kid is None else {"kid": kid}))


@pytest.fixture
def one(listen: Listen, tmp_path: Path) -> Callable[..., Front]:
    def begin(keys: str = pem(KEY), **options: Any) -> Front:
        path = tmp_path / "keys"
        path.write_text(keys)
        given = {
            "token_key": path,
            "token_audience": US,
            "tenant_claim": "org",
            "store": tmp_path / "state.db",
            **options,
        }
        return listen(*(f"--{name.replace('_', '-')}={value}" for name, value in given.items()), policy=POLICY)

    return begin


def asked(front: Front, bearer: str, n: int = 0) -> bool:
    """
    Whether a call of who shows *bearer* was refused.
    """
    return bool(front.call("echo", {"n": n}, Authorization=f"Bearer {bearer}").get("isError"))


def test_users_and_tenants_have_quotas_by_the_claims_of_their_tokens(one: Callable[..., Front]) -> None:
    front = one()
    assert [asked(front, token(), n) for n in range(3)] == [False, False, True]
    assert [asked(front, token(sub="bob"), n) for n in range(2)] == [False, True]
    assert not asked(front, token(sub="bob", org="other"), 9)


def test_a_token_that_was_made_for_us_is_not_passed_on(one: Callable[..., Front], far: Server) -> None:
    one().ask(HELLO, Authorization=f"Bearer {token()}")
    assert "authorization" not in {name.lower() for name in far.seen.get_nowait()[1]}
    one(header="Authorization: Bearer own").ask(HELLO, Authorization=f"Bearer {token()}")
    assert {"bearer own"} <= {value.lower() for value in far.seen.get_nowait()[1].values()}


WRONG = {
    "none": None,
    "no bearer": "Basic YTpi",
    "no token": "Bearer not.a.token",
    "another's key": f"Bearer {token(OTHER)}",
    "no signature": f"Bearer {token(None, 'none')}",
    "a secret that is the public key": f"Bearer {token('x' * 64, 'HS256')}",
    "over": f"Bearer {token(exp=time.time() - 60)}",
    "without an end": f"Bearer {token(exp=None)}",
    "for others": f"Bearer {token(aud='https://other.example.com')}",
    "for nobody": f"Bearer {token(aud=None)}",
    "without a user": f"Bearer {token(sub=None)}",
    "a user that is no text": f"Bearer {token(org={'a': 1})}",
    "not yet": f"Bearer {token(nbf=time.time() + 43_200)}",
}


@table("said", WRONG.values())
@table("method", ["POST", "GET"])
def test_who_shows_no_valid_token_is_a_stranger(
    one: Callable[..., Front], far: Server, said: str | None, method: str
) -> None:
    headers = {} if said is None else {"Authorization": said}
    status, told, body = one().ask(HELLO if method == "POST" else None, method, **headers)
    assert (status, told["www-authenticate"]) == (401, "Bearer")
    assert body.startswith("this needs a token")
    assert far.seen.empty()


def test_who_issues_tokens_may_be_said(one: Callable[..., Front]) -> None:
    front = one(token_issuer="https://login.example.com")
    assert front.ask(HELLO, Authorization=f"Bearer {token()}")[0] == 401
    assert front.ask(HELLO, Authorization=f"Bearer {token(iss='https://evil.example.com')}")[0] == 401
    assert front.ask(HELLO, Authorization=f"Bearer {token(iss='https://login.example.com')}")[0] == 200


@table(
    ("key", "algorithm"),
    [
        (rsa.generate_private_key(65537, 2048), "RS256"),
        (rsa.generate_private_key(65537, 2048), "PS512"),
        (ec.generate_private_key(ec.SECP384R1()), "ES384"),
        (ed25519.Ed25519PrivateKey.generate(), "EdDSA"),
    ],
)
def test_any_public_key_will_do(one: Callable[..., Front], key: Any, algorithm: str) -> None:
    front = one(pem(key))
    assert front.ask(HELLO, Authorization=f"Bearer {token(key, algorithm)}")[0] == 200
    assert front.ask(HELLO, Authorization=f"Bearer {token()}")[0] == 401


def test_of_a_set_of_keys_the_one_counts_that_the_token_names(one: Callable[..., Front]) -> None:
    made = jwt.algorithms.ECAlgorithm(jwt.algorithms.ECAlgorithm.SHA256)
    listed = [json.loads(made.to_jwk(key.public_key())) | {"kid": kid} for key, kid in ((KEY, "a"), (OTHER, "b"))]
    front = one(json.dumps({"keys": listed}))
    assert front.ask(HELLO, Authorization=f"Bearer {token(kid='a')}")[0] == 200
    assert front.ask(HELLO, Authorization=f"Bearer {token(OTHER, kid='b')}")[0] == 200
    for wrong in (token(kid="b"), token(OTHER, kid="a"), token(kid="c"), token()):
        assert front.ask(HELLO, Authorization=f"Bearer {wrong}")[0] == 401


@table(
    "text",
    ["", "no key", "{}", '{"keys": []}', '{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}', "-----BEGIN PUBLIC KEY-----\n"],
)
def test_keys_that_are_none_are_told_before_anybody_is_listened_to(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], text: str
) -> None:
    path = tmp_path / "keys"
    path.write_text(text)
    options = ["--url", "http://127.0.0.1:9/mcp", "--listen", "0", "--token-key", str(path), "--token-audience", US]
    assert main(options) == 2
    assert "--token-key" in capfd.readouterr().err


def test_a_session_is_its_users_whichever_token_they_show(one: Callable[..., Front]) -> None:
    front = one()
    session = front.ask(HELLO, Authorization=f"Bearer {token()}")[1]["mcp-session-id"]
    ping = {"jsonrpc": "2.0", "method": "notifications/x"}
    anew, bob = token(exp=time.time() + 9_999), token(sub="bob")
    for bearer, status in ((anew, 202), (bob, 404)):
        assert front.ask(ping, Mcp_Session_Id=session, Authorization=f"Bearer {bearer}")[0] == status
