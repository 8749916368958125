"""
Which machines of the network a tool may reach: public ones, and those that are named. And what a URL names.
"""

import ipaddress
import queue
import re
import socket
import threading

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urljoin, urlsplit

from .failure import ToolFailure


Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], list[str]]

MAX_URL_CHARS: Final = 4_096
MAX_HOST_CHARS: Final = 253
PORTS: Final = {"http": 80, "https": 443}
MAX_ADDRESSES: Final = 16
"""Of one name that are tried."""
_SAFE: Final = "%/:=&?~+!$,;'@()*[]"
_NAME: Final = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
# By IANA's tables of special addresses, as they are today: those of Python are as old as it is.
_LOCAL: Final = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24"),
        *("203.0.113.0/24", "224.0.0.0/3"),
        "168.63.129.16/32",  # Azure's own, in each of its machines
    )
)
_GLOBAL: Final = ipaddress.IPv6Network("2000::/3")
_LOCAL_6: Final = tuple(
    ipaddress.IPv6Network(network) for network in ("2001::/23", "2001:db8::/32", "3ffe::/16", "3fff::/20")
)
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR: Final = ipaddress.IPv6Network("2002::/16")
_ISATAP: Final = (0x00005EFE, 0x02005EFE)
_LOW: Final = 0xFFFF_FFFF
UNSAFE_PORTS: Final = frozenset(
    {*range(1, 26), 37, 42, 43, 53, 69, 77, 79, 87, 95, *range(101, 105), *range(109, 112), 113, 115, 117, 119, 123}
    | {135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563}
    | {587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6379, 6566}
    | {*range(6665, 6670), 6679, 6697, 10080, 11211}
)
"""Ports of mail, IRC, Redis and the like: a request for a page is a command to them. No browser opens most of them."""


def resolved(host: str, port: int) -> list[str]:
    """
    The addresses of *host*, as the system resolves it. Raises OSError, UnicodeError.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Network:
    """
    The places that may be reached: public addresses, and those that *allow* names: host names, addresses, networks
    (`10.0.0.0/8`).

    *resolve* `(host, port) -> addresses` asks the system unless another is given.
    """

    def __init__(self, allow: Collection[str] = (), *, resolve: Resolve = resolved) -> None:
        self._hosts: set[str] = set()
        self._networks: list[Any] = []
        for name in allow:
            try:
                self._networks.append(ipaddress.ip_network(name.strip("[]"), strict=False))
            except ValueError:
                self._hosts.add(host_name(name) or name.lower())
        self._resolve = resolve

    def address(self, host: str, port: int) -> str:
        """
        The first of the `addresses` of *host*.
        """
        return self.addresses(host, port)[0]

    def addresses(self, host: str, port: int, *, timeout: float | None = None) -> list[str]:
        """
        Returns the addresses that a connection to *host* may use, each of them judged. They are asked for once, within
        *timeout* seconds. So a name that changes its answer cannot lead elsewhere after it was judged.

        Raises ToolFailure: `permission` for a private, loopback, link-local or otherwise not public address,
        `not_found` if there is no such name. Raises TimeoutError.
        """
        try:
            found = self._resolve(host, port) if timeout is None else _in_time(self._resolve, host, port, timeout)
        except TimeoutError:
            raise
        except (OSError, ValueError) as error:
            raise ToolFailure("not_found", f"there is no host `{host[:200]}`") from error
        if not found:
            raise ToolFailure("not_found", f"there is no host `{host[:200]}`")
        if host.lower().rstrip(".") in self._hosts:
            return found[:MAX_ADDRESSES]
        for text in found:
            # One private address among public ones is enough to be tricked.
            if not self._may(text, port):
                raise ToolFailure(
                    "permission",
                    f"`{host[:200]}` is not on the public internet, or port {port} is not of the web",
                    retryable=False,
                    next_action_hint="Use a public address, or ask the user for what is there.",
                )
        return found[:MAX_ADDRESSES]

    def _may(self, text: str, port: int) -> bool:
        try:
            address = ipaddress.ip_address(text.partition("%")[0])
        except ValueError:
            return False
        # An IPv4 address in another spelling is that address; other ways to one only lead through a gateway.
        same = (address, inner(address)) if _is_spelling(address) else (address,)
        if any(one.version == network.version and one in network for one in same for network in self._networks):
            return True
        return port not in UNSAFE_PORTS and is_public(address)


def is_public(address: Address) -> bool:
    """
    Returns whether *address* is one of the public internet, and also the IPv4 address within, if there is one.
    """
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _LOCAL)
    within = inner(address)
    if within is not address and not is_public(within):
        return False
    return _is_spelling(address) or (address in _GLOBAL and not any(address in network for network in _LOCAL_6))


def inner(address: Address) -> Address:
    """
    The IPv4 address that an IPv6 one stands for or leads to (mapped, NAT64, 6to4, ISATAP); *address* itself if none.
    """
    if isinstance(address, ipaddress.IPv4Address):
        return address
    number = int(address)
    if address.ipv4_mapped is not None or address in _NAT64:
        return ipaddress.IPv4Address(number & _LOW)
    if address in _SIX_TO_FOUR:
        return ipaddress.IPv4Address((number >> 80) & _LOW)
    if (number >> 32) & _LOW in _ISATAP:
        return ipaddress.IPv4Address(number & _LOW)
    return address


def _is_spelling(address: Address) -> bool:
    return isinstance(address, ipaddress.IPv6Address) and (address.ipv4_mapped is not None or address in _NAT64)


def host_name(host: str) -> str | None:
    """
    *host* in the one form that is judged and asked for: lowercase ASCII, punycode for other letters, an address of IPv6
    without brackets. Returns None if it is no name.
    """
    if ":" in host:
        if "%" in host:
            # A zone is of this machine.
            return None
        try:
            return str(ipaddress.IPv6Address(host))
        except ValueError:
            return None
    if len(host) > MAX_HOST_CHARS + 1:
        return None
    try:
        # Full-width digits and dots become plain ones.
        name = host.encode("idna").decode("ascii").lower().rstrip(".")
    except UnicodeError:
        return None
    return name if len(name) <= MAX_HOST_CHARS and _NAME.fullmatch(name) else None


def _in_time(resolve: Resolve, host: str, port: int, timeout: float) -> list[str]:
    """
    Returns the answer of *resolve*, within *timeout* seconds. Raises TimeoutError, and what it raises.
    """
    answers: queue.SimpleQueue[list[str] | BaseException] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(resolve(host, port))
        except BaseException as error:  # noqa: BLE001  raised again by whoever waits
            answers.put(error)

    # The system's resolver cannot be interrupted; it ends by itself.
    threading.Thread(target=ask, daemon=True, name="resolve").start()
    try:
        answer = answers.get(timeout=timeout)
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(answer, BaseException):
        raise answer
    return answer


@dataclass(frozen=True, slots=True)
class Target:
    """
    The parts of a URL: its host, its path, and the way there.
    """

    scheme: str
    host: str
    """ASCII, lowercase; an address of IPv6 without brackets."""
    port: int
    path: str
    """With the query."""

    @property
    def origin(self) -> tuple[str, str, int]:
        """
        Who is asked.
        """
        return (self.scheme, self.host, self.port)

    @property
    def url(self) -> str:
        """
        The whole URL, without a fragment.
        """
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}"


def parsed(url: str) -> Target:
    """
    *url* in its parts. Raises ToolFailure `validation` if it cannot be fetched.
    """
    if len(url) > MAX_URL_CHARS or any(ord(char) <= 32 or ord(char) == 127 for char in url):
        raise ToolFailure("validation", "the URL is too long or holds spaces or control characters", retryable=False)
    try:
        parts = urlsplit(url)
        port = parts.port
        path = quote(parts.path or "/", safe=_SAFE) + (f"?{quote(parts.query, safe=_SAFE)}" if parts.query else "")
    except (ValueError, UnicodeError):
        raise ToolFailure("validation", f"`{printable(url)}` is no URL", retryable=False) from None
    if parts.scheme not in PORTS or not parts.hostname:
        raise ToolFailure("validation", "a URL begins with `http://` or `https://` and a host", retryable=False)
    if parts.username is not None or port == 0:
        raise ToolFailure("validation", "a URL must not hold a name, a password or port 0", retryable=False)
    host = host_name(parts.hostname)
    if host is None:
        raise ToolFailure("validation", f"`{printable(parts.hostname)}` is no name of a host", retryable=False)
    return Target(parts.scheme, host, port or PORTS[parts.scheme], path if path.startswith("/") else f"/{path}")


def onward_of(target: Target, location: str) -> Target:
    """
    Returns the URL that a redirect of *target* leads to.
    """
    with suppress(UnicodeError):
        # Bytes that are no ASCII come as Latin-1, whatever they are.
        location = location.encode("latin-1").decode()
    try:
        return parsed(urljoin(target.url, location.strip().replace(" ", "%20")))
    except ValueError:
        raise ToolFailure("validation", "the server redirects to what is no URL", retryable=False) from None


def printable(text: str) -> str:
    """
    *text* of a stranger as a message may hold it: short, and without control characters.
    """
    return "".join(char if char.isprintable() else "?" for char in text[:200])
