"""How many requests a network address may send: a token bucket for each address, in bounded memory."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address


@dataclass(slots=True)
class RateLimiter:
    """Allows ``burst`` requests at once, then ``per_s`` per second.

    It forgets the idlest of more than ``most`` addresses.
    """

    burst: float = 120
    per_s: float = 2
    most: int = 10_000
    _levels: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)  # tokens, and when

    def wait_s(self, address: str, now: float, cost: float = 1) -> float:
        """Seconds until the address may send a request of weight ``cost`` (at most ``burst``); 0 if it may now."""
        tokens, at = self._levels.pop(address, (self.burst, now))
        tokens = min(self.burst, tokens + max(0.0, now - at) * self.per_s)
        is_granted = tokens >= cost
        self._levels[address] = (tokens - cost if is_granted else tokens, now)
        if len(self._levels) > self.most:
            self._levels.popitem(last=False)
        return 0.0 if is_granted else (cost - tokens) / self.per_s


def client_network(address: str) -> str:
    """The address that stands for a client.

    For IPv6 it is the network of 64 bits, because a client has a whole network.
    """
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(IPv6Address(int(parsed) >> 64 << 64))
    return str(parsed)
