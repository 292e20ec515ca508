"""How many requests an address may send: a bucket of tokens each, in bounded memory."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address


@dataclass(slots=True)
class RateLimiter:
    """``burst`` requests at once, then ``per_s`` a second. Of more than ``most`` addresses the idlest are forgotten."""

    burst: float = 120
    per_s: float = 2
    most: int = 10_000
    _levels: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)  # tokens, and when

    def wait_s(self, address: str, now: float, cost: float = 1) -> float:
        """0 where a request is taken that counts for ``cost`` (``burst`` at most), else in how many seconds it is."""
        tokens, at = self._levels.pop(address, (self.burst, now))
        tokens = min(self.burst, tokens + max(0.0, now - at) * self.per_s)
        taken = tokens >= cost
        self._levels[address] = (tokens - cost if taken else tokens, now)
        if len(self._levels) > self.most:
            self._levels.popitem(last=False)
        return 0.0 if taken else (cost - tokens) / self.per_s


def client_network(address: str) -> str:
    """The address that stands for a client: of IPv6 its network of 64 bits, which one client has whole."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(IPv6Address(int(parsed) >> 64 << 64))
    return str(parsed)
