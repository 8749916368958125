"""
Which machines may be reached.
"""

import pytest

from guardrails.agent.builtin.addresses import Network, Resolve
from guardrails.agent.builtin.failure import ToolFailure


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.9.9.9",
        "0.0.0.0",  # noqa: S104
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "192.0.0.170",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1%eth0",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "2002:7f00:1::",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "2001:0:4136:e378:8000:63bf:80ff:fffe",
        "2001:db8::1",
        "nonsense",
    ],
)
def test_what_is_not_public_is_refused(address: str) -> None:
    with pytest.raises(ToolFailure) as caught:
        Network(resolve=lambda *_: [address]).address("example.com", 80)
    assert caught.value.error_type == "permission"


@pytest.mark.parametrize("address", ["93.184.216.34", "8.8.8.8", "2606:2800:220:1::1", "::ffff:8.8.8.8"])
def test_what_is_public_may_be_reached(address: str) -> None:
    assert Network(resolve=lambda *_: [address]).address("example.com", 80) == address


def test_one_private_address_among_public_ones_is_enough_to_refuse() -> None:
    with pytest.raises(ToolFailure):
        Network(resolve=lambda *_: ["8.8.8.8", "127.0.0.1"]).address("example.com", 80)


@pytest.mark.parametrize("allow", ["127.0.0.1", "127.0.0.0/8", "Intern.Example", "intern.example."])
def test_what_is_named_may_be_reached(allow: str) -> None:
    network = Network([allow], resolve=lambda *_: ["127.0.0.1"])
    assert network.address("intern.example", 80) == "127.0.0.1"


def test_a_name_that_does_not_exist_is_not_found() -> None:
    def none(host: str, port: int) -> list[str]:
        raise OSError(-2, "Name or service not known")

    answers: list[Resolve] = [none, lambda *_: []]
    for resolve in answers:
        with pytest.raises(ToolFailure) as caught:
            Network(resolve=resolve).address("none.example", 80)
        assert caught.value.error_type == "not_found"
