"""
Which machines of the network a tool may reach: public ones, and those that are named.
"""

import ipaddress
import socket

from collections.abc import Callable, Collection
from typing import Any, Final

from .failure import ToolFailure


Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], list[str]]

_NAT64: Final = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))


def resolved(host: str, port: int) -> list[str]:
    """
    The addresses of *host*, as the system resolves it. Raises OSError, UnicodeError.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Network:
    """
    What may be reached: public addresses, and what *allow* names: host names, addresses, networks (`10.0.0.0/8`).

    *resolve* `(host, port) -> addresses` asks the system unless another is given.
    """

    def __init__(self, allow: Collection[str] = (), *, resolve: Resolve = resolved) -> None:
        self._hosts: set[str] = set()
        self._networks: list[Any] = []
        for name in allow:
            try:
                self._networks.append(ipaddress.ip_network(name))
            except ValueError:
                self._hosts.add(name.lower().rstrip("."))
        self._resolve = resolve

    def address(self, host: str, port: int) -> str:
        """
        The one address that a connection to *host* is to use: asked for once, so that a name that changes its answer
        cannot lead elsewhere after it was judged.

        Raises ToolFailure: `permission` for a private, loopback, link-local or otherwise not public address,
        `not_found` where there is no such name.
        """
        try:
            found = self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise ToolFailure("not_found", f"there is no host `{host[:200]}`") from error
        if not found:
            raise ToolFailure("not_found", f"there is no host `{host[:200]}`")
        if host.lower().rstrip(".") not in self._hosts:
            for text in found:
                # One private address among public ones is enough to be tricked.
                if not self._may(text):
                    raise ToolFailure(
                        "permission",
                        f"`{host[:200]}` is not on the public internet",
                        retryable=False,
                        next_action_hint="Use a public address, or ask the user for what is there.",
                    )
        return found[0]

    def _may(self, text: str) -> bool:
        try:
            address = ipaddress.ip_address(text.partition("%")[0])
        except ValueError:
            return False
        inner = embedded(address)
        if any(
            one.version == network.version and one in network for one in (address, inner) for network in self._networks
        ):
            return True
        # A mapped address is the other in another spelling; the rest are ways through a gateway, which must be public too.
        judged = (inner,) if getattr(address, "ipv4_mapped", None) else (address, inner)
        return all(one.is_global and not one.is_multicast and not one.is_reserved for one in judged)


def embedded(address: Address) -> Address:
    """
    The IPv4 address that an IPv6 one stands for (mapped, 6to4, Teredo, NAT64); *address* itself where there is none.
    """
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if any(address in network for network in _NAT64):
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None) or address
