"""
The test of the guard in `own_guard.py`: run it by `pytest examples`.
"""

from own_guard import Recipients

from guardrails import Envelope, Policy, Session


def send(session: Session, *to: str) -> Envelope:
    return session.call("send_mail", {"to": list(to)}, lambda tool, arguments: "sent")


def test_the_call_that_would_be_too_many_is_refused_and_a_smaller_one_runs() -> None:
    with Policy([Recipients(limit=3)]).session("s") as session:
        assert send(session, "ann", "bob").status == "success"
        assert send(session, "cem", "dan").code == "recipients.limit"
        assert send(session, "cem").status == "success"


def test_a_refused_call_is_charged_to_nobody() -> None:
    with Policy([Recipients(limit=2)]).session("s") as session:
        assert send(session, "ann", "bob", "cem").code == "recipients.limit"
        assert send(session, "ann", "bob").status == "success"
