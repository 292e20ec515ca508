"""The addresses of this machine, and the prefixes of its network's NAT64."""

from ipaddress import IPv6Network, ip_address

import pytest

from crawler.fetch import own_network
from crawler.fetch.own_network import is_own, nat64_prefixes


def test_loopback_is_an_address_of_this_machine() -> None:
    assert is_own(ip_address("127.0.0.1"))
    assert not is_own(ip_address("198.51.100.1"))
    assert not is_own(ip_address("2001:db8:1::1"))


def test_no_address_is_own_where_any_can_be_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_network, "_can_bind", lambda _: True)
    assert not is_own(ip_address("127.0.0.1"))


@pytest.mark.parametrize(
    ("address", "prefix"),
    [
        ("64:ff9b::c000:aa", "64:ff9b::/96"),
        ("2a00:64::c000:ab", "2a00:64::/96"),
        # The examples of RFC 6052, 2.4, with 192.0.0.170 in place of 192.0.2.33.
        ("2001:db8:c000:aa::", "2001:db8::/32"),
        ("2001:db8:1c0:0:aa::", "2001:db8:100::/40"),
        ("2001:db8:122:c000:0:aa00::", "2001:db8:122::/48"),
        ("2001:db8:122:3c0:0:aa::", "2001:db8:122:300::/56"),
        ("2001:db8:122:344:c0:0:aa00:0", "2001:db8:122:344::/64"),
    ],
)
def test_rfc7050_3_the_prefix_is_found_around_the_known_address(address: str, prefix: str) -> None:
    assert nat64_prefixes([address]) == {IPv6Network(prefix)}


def test_other_addresses_reveal_no_prefix() -> None:
    assert nat64_prefixes(["192.0.0.170", "2a00::1", "fe80::1%eth0"]) == frozenset()
