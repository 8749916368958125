"""
Which machines may be reached.
"""

import ipaddress
import threading

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.agent.builtin.addresses import Address, Network, Resolve, host_name, inner, is_public
from guardrails.agent.builtin.failure import ToolFailure
from tests.tables import table


@table(
    "address",
    [
        "127.0.0.1",
        "127.9.9.9",
        "0.0.0.0",
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
        "192.0.0.192",
        "192.0.0.1",
        "168.63.129.16",
        "100.100.100.200",
        "fec0::1",
        "feff::1",
        "3fff::1",
        "3ffe::1",
        "4000::1",
        "5f00::1",
        "100::1",
        "100:0:0:1::1",
        "2001:2::1",
        "2001:10::1",
        "64:ff9b:1::808:808",
        "::8.8.8.8",
        "::7f00:1",
        "::ffff:0:127.0.0.1",
        "::ffff:0:8.8.8.8",
        "2002:a9fe:a9fe::1",
        "fe80::5efe:8.8.8.8",
        "fd00::5efe:8.8.8.8",
        "2606:2800::5efe:10.0.0.1",
        "2606:2800::200:5efe:127.0.0.1",
        "::ffff:192.0.0.192",
        "2002:c000:c0::",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "nonsense",
        "",
    ],
)
def test_what_is_not_public_is_refused(address: str) -> None:
    with pytest.raises(ToolFailure) as caught:
        Network(resolve=lambda *_: [address]).address("example.com", 80)
    assert caught.value.error_type == "permission"


@table(
    "address",
    [
        "93.184.216.34",
        "8.8.8.8",
        "191.255.255.255",
        "223.255.255.255",
        "2606:2800:220:1::1",
        "2a00:1450::5efe:8.8.8.8",
        "2001:200::1",
        "2001:4860:4860::8888",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
        "2002:808:808::1",
    ],
)
def test_what_is_public_may_be_reached(address: str) -> None:
    assert Network(resolve=lambda *_: [address]).address("example.com", 80) == address


@given(st.ip_addresses())
def test_what_python_knows_to_be_special_is_never_public(address: Address) -> None:
    said = is_public(address)
    stands_for = inner(address)
    assert not said or stands_for is not address or (address.is_global and not address.is_multicast)
    assert not said or stands_for.is_global
    if isinstance(address, ipaddress.IPv4Address):
        number = int(address)
        assert is_public(ipaddress.IPv6Address((0xFFFF << 32) + number)) is said
        assert is_public(ipaddress.IPv6Address((0x2002 << 112) + (number << 80))) is said
        assert is_public(ipaddress.IPv6Address((0x2A00_1450 << 96) + (0x5EFE << 32) + number)) is said


def test_an_address_of_a_gateway_is_not_the_one_that_is_named() -> None:
    for address in ("fd00::5efe:10.0.0.1", "fe80::5efe:10.0.0.1", "2002:a00:1::1"):
        with pytest.raises(ToolFailure):
            Network(["10.0.0.1"], resolve=lambda *_, found=address: [found]).address("example.com", 80)
    assert Network(["10.0.0.1"], resolve=lambda *_: ["::ffff:10.0.0.1"]).address("example.com", 80)


@table("port", [22, 25, 6379, 11211])
def test_a_port_of_another_protocol_is_for_named_hosts_only(port: int) -> None:
    with pytest.raises(ToolFailure):
        Network(resolve=lambda *_: ["8.8.8.8"]).address("example.com", port)
    assert Network(["example.com"], resolve=lambda *_: ["8.8.8.8"]).address("example.com", port)
    assert Network(resolve=lambda *_: ["8.8.8.8"]).address("example.com", 8080)


def test_each_address_of_a_name_is_judged_and_given() -> None:
    assert Network(resolve=lambda *_: ["8.8.8.8", "1.1.1.1"]).addresses("a", 80) == ["8.8.8.8", "1.1.1.1"]


def test_a_resolver_that_does_not_answer_is_given_up() -> None:
    answered = threading.Event()
    network = Network(resolve=lambda *_: ["8.8.8.8"] if answered.wait(30) else [])
    with pytest.raises(TimeoutError):
        network.addresses("example.com", 80, timeout=0.05)
    answered.set()
    with pytest.raises(ToolFailure):
        Network(resolve=lambda *_: []).addresses("example.com", 80, timeout=5)


@table(
    ("host", "expected"),
    [
        ("Example.COM.", "example.com"),
        ("m\u00fcnchen.de", "xn--mnchen-3ya.de"),
        ("\uff11\uff12\uff17.0.0.1", "127.0.0.1"),
        ("127\u30020\uff0e0\uff611", "127.0.0.1"),
        ("\u24d4xample.com", "example.com"),
        ("a_b.example", "a_b.example"),
        ("::1", "::1"),
        ("0:0::0001", "::1"),
        ("fe80::1%25eth0", None),
        ("fe80::1%eth0", None),
        ("127%2e0.0.1", None),
        ("a..b", None),
        ("", None),
        (".", None),
        ("a\\b", None),
        ("a'b", None),
        ("a\u2028b", None),
        ("a" * 64, None),
        ("a." * 126 + "a", "a." * 126 + "a"),
        ("a." * 127 + "aa", None),
        ("\ufdfa" * 253, None),
    ],
)
def test_a_host_has_one_form(host: str, expected: str | None) -> None:
    assert host_name(host) == expected


def test_one_private_address_among_public_ones_is_enough_to_refuse() -> None:
    with pytest.raises(ToolFailure):
        Network(resolve=lambda *_: ["8.8.8.8", "127.0.0.1"]).address("example.com", 80)


@table("allow", ["127.0.0.1", "127.0.0.0/8", "Intern.Example", "intern.example."])
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
