"""The address guard's judgement, address by address."""

from ipaddress import IPv6Network, ip_address

import pytest

from crawler.fetch.address_guard import refusal

REFUSED = {
    "loopback": ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"],
    "private": ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fd00::1", "fec0::1", "::ffff:10.1.2.3"],
    "link-local": ["169.254.169.254", "fe80::1", "fe80::1%eth0", "::ffff:169.254.169.254"],
    "carrier-grade NAT": ["100.64.0.1", "100.127.255.255"],
    "6to4": ["192.88.99.1", "2002:7f00:1::1"],
    "NAT64": ["64:ff9b::7f00:1", "64:ff9b::8.8.8.8", "64:ff9b:1::1"],
    "a cloud platform's": ["168.63.129.16", "::ffff:168.63.129.16"],
    "reserved": ["192.0.0.8", "192.0.2.1", "198.18.0.1", "203.0.113.9", "240.0.0.1"],
    "a reserved": ["2001::1", "2001:db8::1", "::7f00:1", "4000::1", "100::1", "3fff::1"],
}
NEVER = {
    "unspecified": ["0.0.0.0", "0.1.2.3", "::"],
    "multicast": ["224.0.0.1", "239.255.255.255", "ff02::1", "::ffff:224.0.0.1"],
    "broadcast": ["255.255.255.255"],
}
PUBLIC = [
    "8.8.8.8",
    "168.63.129.15",
    "172.32.0.1",
    "100.63.255.255",
    "192.0.1.1",
    "2a00:1450:4001::1",
    "::ffff:8.8.8.8",
]


@pytest.mark.parametrize(("kind", "address"), [(kind, a) for kind, addresses in REFUSED.items() for a in addresses])
def test_special_addresses_need_permission(kind: str, address: str) -> None:
    reason = refusal(address, allow_private=False, loopback_only=False)
    assert reason is not None
    assert f" {kind} address; fetch.allow_private permits it" in reason
    assert reason.startswith(address.partition("%")[0])
    assert refusal(address, allow_private=True, loopback_only=False) is None


@pytest.mark.parametrize(("kind", "address"), [(kind, a) for kind, addresses in NEVER.items() for a in addresses])
def test_what_no_server_can_have_is_never_permitted(kind: str, address: str) -> None:
    for allow_private in (False, True):
        reason = refusal(address, allow_private=allow_private, loopback_only=False)
        assert (
            reason
            == f"{address} is a{'n' if kind == 'unspecified' else ''} {kind} address, which no web server can have"
        )


@pytest.mark.parametrize("address", PUBLIC)
def test_the_public_internet_is_open(address: str) -> None:
    assert refusal(address, allow_private=False, loopback_only=False) is None
    assert refusal(address, allow_private=True, loopback_only=False) is None


@pytest.mark.parametrize("address", [*PUBLIC, "10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::1", "0.0.0.0"])
def test_without_a_contact_a_crawl_stays_on_loopback(address: str) -> None:
    for allow_private in (False, True):
        reason = refusal(address, allow_private=allow_private, loopback_only=True)
        assert reason == f"{address} is not loopback, and a crawl without identity.contact stays on loopback"


def test_loopback_itself_still_needs_permission_without_a_contact() -> None:
    assert refusal("127.0.0.1", allow_private=True, loopback_only=True) is None
    assert refusal("::ffff:127.0.0.1", allow_private=True, loopback_only=True) is None
    reason = refusal("127.0.0.1", allow_private=False, loopback_only=True)
    assert reason == "127.0.0.1 is a loopback address; fetch.allow_private permits it"


def test_a_text_that_is_no_address_is_refused() -> None:
    assert refusal("localhost", allow_private=True, loopback_only=False) == "'localhost' is not an IP address"


def test_an_address_of_this_machine_is_private() -> None:
    own = ip_address("8.8.8.8")

    def judged(address: str, *, allow_private: bool = False) -> str | None:
        return refusal(address, allow_private=allow_private, loopback_only=False, is_own=lambda ip: ip == own)

    for address in ("8.8.8.8", "::ffff:8.8.8.8"):
        assert judged(address) == f"{address} is this machine's own address; fetch.allow_private permits it"
        assert judged(address, allow_private=True) is None
    assert judged("8.8.4.4") is None


def test_the_networks_own_nat64_is_private() -> None:
    prefix = IPv6Network("2a00:64::/96")
    for address, refused in (("2a00:64::a00:1", True), ("2a00:64::808:808", True), ("2a00:65::808:808", False)):
        reason = refusal(address, allow_private=False, loopback_only=False, nat64=[prefix])
        assert reason == (f"{address} is a NAT64 address; fetch.allow_private permits it" if refused else None)
        assert refusal(address, allow_private=True, loopback_only=False, nat64=[prefix]) is None
