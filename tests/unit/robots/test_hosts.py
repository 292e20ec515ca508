"""The Host line: the proposal of 2003; docs/protocols.md, section 2."""

import pytest

from crawler.model import Reading
from crawler.robots.mirrors import MOST_STEPS, Cycle, Main, main_of
from crawler.robots.readings import SiteRules, read
from crawler.robots.text import parse

PROPOSAL = "User-Agent: *\nDisallow: /forum\nDisallow: /cgi-bin\nHost: www.myhost.ru\n"
OLD = pytest.mark.parametrize("reading", [Reading.DRAFT1996, Reading.STRICT])


def rules(text: str, site: str, reading: Reading, known: tuple[str, ...] = ()) -> SiteRules:
    return read(parse(text.encode()), token="figtree", reading=reading, site=site, knows_host=known.__contains__)


@OLD
@pytest.mark.parametrize("site", ["http://www.host1.com", "http://www.myhost.ru:8081"])
def test_the_proposals_example_on_mirrors_ends_in_disallow_all(site: str, reading: Reading) -> None:
    found = rules(PROPOSAL, site, reading)
    assert found.main_site == "http://www.myhost.ru"
    assert found.host_line == 4
    assert found.verdict("/forum").line == 2
    verdict = found.verdict("/")
    assert (verdict.allowed, verdict.line, verdict.reading) == (False, 4, Reading.DRAFT1996)
    assert "Host: www.myhost.ru" in verdict.text
    assert "Disallow: /" in verdict.text


@OLD
def test_the_proposals_example_on_the_main_host_changes_nothing(reading: Reading) -> None:
    found = rules(PROPOSAL, "http://www.myhost.ru", reading)
    assert found.main_site is None
    assert found.verdict("/").allowed
    assert not found.verdict("/forum").allowed


def test_rfc9309_shows_the_host_line_without_obeying_it() -> None:
    found = rules(PROPOSAL, "http://www.host1.com", Reading.RFC9309)
    assert (found.main_site, found.host_line) == (None, 4)
    assert found.verdict("/").allowed


@OLD
def test_the_default_port_is_that_of_the_scheme(reading: Reading) -> None:
    assert rules("User-agent: *\nHost: a.ru:443\n", "https://a.ru", reading).main_site is None
    assert rules("User-agent: *\nHost: a.ru:80\n", "http://a.ru", reading).main_site is None
    assert rules("User-agent: *\nHost: a.ru:8443\n", "https://a.ru", reading).main_site == "https://a.ru:8443"
    assert rules("User-agent: *\nHost: A.RU:8080\n", "http://a.ru:8080", reading).main_site is None


@OLD
@pytest.mark.parametrize(("line", "site"), [("b.ru:80", "https://a.ru"), ("b.ru:443", "http://a.ru")])
def test_a_port_that_contradicts_the_scheme_is_incorrect(line: str, site: str, reading: Reading) -> None:
    found = rules(f"User-agent: *\nHost: {line}\n", site, reading)
    assert (found.main_site, found.host_line) == (None, None)
    assert found.verdict("/").allowed


@OLD
def test_a_line_that_names_a_refuted_site_is_ignored(reading: Reading) -> None:
    file = parse(b"User-agent: *\nHost: b.ru\nDisallow: /x\n")
    for refuted, main_site in [("http://b.ru", None), ("http://c.ru", "http://b.ru"), (None, "http://b.ru")]:
        found = read(file, token="figtree", reading=reading, site="http://a.ru", refuted=refuted)
        assert (found.main_site, found.named_site, found.host_line) == (main_site, "http://b.ru", 2)
        assert found.verdict("/").allowed is (main_site is None)
        assert not found.verdict("/x").allowed
        assert not found.says_main


@OLD
def test_any_line_that_equals_the_current_host_is_enough(reading: Reading) -> None:
    text = "User-agent: *\nHost: b.ru\nHost: a.ru\n"
    found = rules(text, "http://a.ru", reading)
    assert (found.main_site, found.host_line) == (None, 3)
    assert found.verdict("/").allowed


@OLD
def test_the_first_correct_line_names_the_main_site(reading: Reading) -> None:
    found = rules("User-agent: *\nHost: b_b.ru\nHost: b.ru\nHost: c.ru\n", "http://a.ru", reading)
    assert (found.main_site, found.host_line) == ("http://b.ru", 3)


@pytest.mark.parametrize("reading", list(Reading))
@pytest.mark.parametrize(
    "value",
    [
        "",
        "localhost",
        "my_host.ru",
        "-a.ru",
        "a-.ru",
        "a..ru",
        ".a.ru",
        "a.ru.",
        "a.ru/",
        "a.ru/path",
        "a.ru, b.ru",
        "a.ru b.ru",
        "a.ru:",
        "a.ru:0",
        "a.ru:65536",
        "a.ru:http",
        "1.2.3.4",
        "0x7f.0x1",
        "[::1]",
        "ftp://a.ru",
        "a" * 64 + ".ru",
        "a." * 130 + "ru",
        "пример.рф",
    ],
)
def test_an_incorrect_line_is_ignored(value: str, reading: Reading) -> None:
    found = rules(f"User-agent: *\nHost: {value}\n", "http://www.host1.com", reading)
    assert (found.main_site, found.host_line) == (None, None)
    assert found.verdict("/").allowed


def test_an_address_is_incorrect_even_if_it_is_the_site() -> None:
    found = rules("User-agent: *\nHost: 1.2.3.4\nHost: b.ru\n", "http://1.2.3.4", Reading.STRICT)
    assert found.main_site == "http://b.ru"


@OLD
def test_a_name_without_a_dot_is_correct_if_the_configuration_resolves_it(reading: Reading) -> None:
    assert rules("User-agent: *\nHost: wiki\n", "http://a.ru", reading, ("wiki",)).main_site == "http://wiki"


@pytest.mark.parametrize("prefix", ["http://", "HTTPS://"])
def test_a_scheme_before_the_name_is_incorrect_in_the_draft_and_taken_off_in_strict(prefix: str) -> None:
    text = f"User-agent: *\nHost: {prefix}b.ru\n"
    assert rules(text, "http://a.ru", Reading.DRAFT1996).main_site is None
    assert rules(text, "http://a.ru", Reading.STRICT).main_site == "http://b.ru"
    assert rules(text, "http://b.ru", Reading.STRICT).main_site is None


def test_strict_does_not_clear_a_site_that_the_draft_calls_a_mirror() -> None:
    text = "User-agent: *\nHost: http://a.ru\nHost: b.ru\n"
    for reading in (Reading.DRAFT1996, Reading.STRICT):
        found = rules(text, "http://a.ru", reading)
        assert found.main_site == "http://b.ru"
        assert not found.verdict("/").allowed


@OLD
@pytest.mark.parametrize(
    "text",
    [
        "Host: b.ru\n",
        "Host: b.ru\n\nUser-agent: *\nDisallow: /x\n",
        "User-agent: *\nDisallow: /x\n\nHost: b.ru\n",
        "User-agent: other\nHost: b.ru\n\nUser-agent: *\nDisallow: /x\n",
    ],
)
def test_a_host_line_counts_only_in_the_record_that_applies(text: str, reading: Reading) -> None:
    assert rules(text, "http://a.ru", reading).main_site is None


def test_an_earlier_allow_still_wins() -> None:
    text = "User-agent: *\nHost: b.ru\nAllow: /open\n"
    found = rules(text, "http://a.ru", Reading.DRAFT1996)
    assert found.verdict("/open").line == 3
    assert found.verdict("/else").line == 2


def test_collapsing_follows_chains() -> None:
    claims = {"a": "b", "b": "c"}
    assert main_of("a", claims.get) == Main("c")
    assert main_of("c", claims.get) == Main("c")


def test_collapsing_reports_cycles() -> None:
    claims = {"a": "b", "b": "c", "c": "b", "d": "d"}
    assert main_of("a", claims.get) == Cycle(("b", "c"))
    assert main_of("c", claims.get) == Cycle(("c", "b"))
    assert main_of("d", claims.get) == Cycle(("d",))


def test_collapsing_ends_on_an_endless_chain() -> None:
    found = main_of("0", lambda site: str(int(site) + 1))
    assert found == Cycle(tuple(map(str, range(MOST_STEPS + 1))))
