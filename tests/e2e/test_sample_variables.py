"""Variables of the user in a sample: SQL expressions and Python functions, by site, and changes between two waves."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import crawler as package
from crawler.demo.pages import Page
from crawler.errors import UsageError
from crawler.sampling.variables import NullIsMissing
from tests.command import HASTY, LOOPBACK, here
from tests.web import LoopbackWeb

SITES = ("a.test", "b.test")
PAGES = 20


def publish(web: LoopbackWeb, *, more: int) -> None:
    for n, host in enumerate(SITES):
        links = "".join(f"<a href=/{page}>x</a>" for page in range(PAGES))
        pages = {
            f"/{page}": Page(f"<title>{'t' * (page + n)}</title>{'x' * (100 * page + more)}") for page in range(PAGES)
        }
        web.sites[host] = {"/": Page(links), **pages}


def draw(web: LoopbackWeb, db: Path) -> None:
    (db.parent / "c.toml").write_text(HASTY)
    options = ("--sample", "6", "--per", "site", "--max-depth", "1", "--config", db.parent / "c.toml", *LOOPBACK)
    ended = here("run", *map(web.url, SITES), *options, "--db", db)
    assert ended.code == 0, ended


def estimates(db: Path, *options: str | Path) -> dict[tuple[str, str], dict[str, Any]]:
    ended = here("sample", "--db", db, *options, "--json")
    assert ended.code == 0, ended
    return {(each["what"], each["among"]): each for each in json.loads(ended.out)["estimates"]}


@pytest.fixture(scope="module")
def loopback() -> Iterator[LoopbackWeb]:
    with LoopbackWeb() as web:
        yield web


@pytest.fixture(scope="module")
def waves(loopback: LoopbackWeb, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The stores of two waves. In the second, each page but the start page has 40 bytes more."""
    folder = tmp_path_factory.mktemp("waves")
    for name, more in (("first.db", 0), ("second.db", 40)):
        publish(loopback, more=more)
        draw(loopback, folder / name)
    return folder / "first.db", folder / "second.db"


def test_variables_are_estimated_overall_and_by_site(waves: tuple[Path, Path], loopback: LoopbackWeb) -> None:
    db = waves[1]
    options = ("--variable", "chars=length(title)", "--variable", "large=body_bytes > 1000", "--by", "site")
    found = estimates(db, *options, "--variable", "type=content_type")
    with closing(sqlite3.connect(db)) as store:
        drawn = store.execute(
            "SELECT s.site, length(p.title), p.body_bytes > 1000 FROM samples s JOIN pages p ON p.url_id = s.url_id"
        ).fetchall()
    assert len(drawn) == 12
    titles = [chars for _, chars, _ in drawn if chars is not None]
    among = "pages" if len(titles) == len(drawn) else "pages with a value of it"
    assert found["chars", among]["value"] == pytest.approx(sum(titles) / len(titles))
    assert (found["chars", among]["unit"], found["chars", among]["units"]) == ("number", len(titles))
    large = found["large", "pages"]
    assert (large["unit"], large["value"]) == ("share", pytest.approx(sum(row[2] for row in drawn) / 12))
    assert large["low"] < large["value"] < large["high"]
    assert found["type = text/html", "pages"]["value"] == 1
    for host in SITES:
        site = loopback.url(host).rstrip("/")
        own = [row[2] for row in drawn if row[0] == site]
        part = found["large", f"pages on site {site}"]
        assert (part["units"], part["value"]) == (6, pytest.approx(sum(own) / 6))


def test_changes_between_two_waves_use_the_same_units(waves: tuple[Path, Path]) -> None:
    first, second = waves
    found = estimates(second, "--since", first, "--variable", "bytes=body_bytes")
    change = found["change of bytes", "pages in both waves"]
    assert change["value"] == found["change of size", "pages in both waves"]["value"]
    assert 0 < change["value"] <= 40
    single = found["bytes", "pages"]["standard_error"]
    assert change["standard_error"] < single / 5, "both waves have the same pages, so their sizes covary"
    assert "change of bytes" in here("sample", "--db", second, "--since", first, "--variable", "bytes=body_bytes").out


async def test_a_function_of_a_page_is_a_variable(waves: tuple[Path, Path]) -> None:
    async with package.open(waves[1]) as crawl:
        survey = await crawl.sample({"chars": lambda page: None if page.title is None else len(page.title)}, by="site")
        expected = await crawl.sample({"chars": "length(title)"}, by="site", since=waves[0])
        chars = [figure for figure in survey.figures if figure.what == "chars"]
        assert chars == [figure for figure in expected.figures if figure.what == "chars"]
        with pytest.raises(UsageError, match="no number"):
            await crawl.sample({"hrefs": lambda page: page.links})  # type: ignore[dict-item, return-value]


async def test_a_missing_value_is_no_page_outside_the_population(waves: tuple[Path, Path]) -> None:
    async with package.open(waves[1]) as crawl:

        def large(page: package.Page) -> object:
            return package.MISSING if ord(page.url[-1]) % 2 else len(page.body or b"") > 1000

        sql = "CASE WHEN unicode(substr(url, -1)) % 2 = 0 THEN body_bytes > 1000 END"  # true of about half of the draw
        asked = {"function": large, "sql": NullIsMissing(sql), "inside": sql}
        survey = await crawl.sample(asked)  # type: ignore[arg-type]
    found = {figure.what: figure.estimate for figure in survey.figures if figure.what in asked}
    assert found["function"] == found["sql"]
    assert found["sql"].missing > 0 == found["inside"].missing
    assert found["sql"].lowest is not None
    assert found["inside"].lowest is None


@pytest.mark.parametrize("text", ["chars", "=length(title)", "x=no_such_column", "x=length(title)) FROM page; --"])
def test_a_variable_that_cannot_be_computed_is_refused(waves: tuple[Path, Path], text: str) -> None:
    ended = here("sample", "--db", waves[1], "--variable", text)
    assert ended.code == 2
    assert text.partition("=")[0] in ended.err


def test_another_sample_is_no_earlier_wave(waves: tuple[Path, Path], loopback: LoopbackWeb, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    publish(loopback, more=0)
    here("run", loopback.url("a.test"), "--sample", "3", "--max-depth", "1", *LOOPBACK, "--db", other,
         "--config", waves[0].with_name("c.toml"))  # fmt: skip
    ended = here("sample", "--db", waves[1], "--since", other)
    assert ended.code == 2
    assert "another sample" in ended.err


def test_hand_codes_and_functions_are_variables_everywhere(waves: tuple[Path, Path], tmp_path: Path) -> None:
    db = waves[1]
    with closing(sqlite3.connect(db)) as store:
        drawn = [url for (url,) in store.execute("SELECT url FROM samples ORDER BY draw")]
    codes = tmp_path / "codes.csv"
    rows = [f"{url},{'news' if n < 8 else 'shop'},ann" for n, url in enumerate(drawn[:-1])]
    rows += [f"{drawn[0]},news,bob", f"{drawn[1]},shop,bob"]
    codes.write_text("\n".join(["url,topic,coder", *rows]))
    (tmp_path / "own.py").write_text("def words(page):\n    return len(page.text) // 100\n")
    options = ("--variable", f"topic=@{codes}", "--variable", f"words=@{tmp_path / 'own.py'}")
    found = estimates(db, *options, "--by", "topic")
    assert (found["topic = news", "pages"]["units"], found["topic = news", "pages"]["missing"]) == (11, 1)
    assert found["words", "pages of topic news"]["units"] == 8
    assert found["words", "pages of topic news"]["missing"] == 1, "one page has no code"
    total = found["words", "pages"]["total"]["value"]
    parts = [found["words", f"pages of topic {topic}"]["total"]["value"] for topic in ("news", "shop")]
    assert 0 < sum(parts) <= 1.4 * total
    said = here("sample", "--db", db, *options).out
    assert "2 coded by several, 50.0 % of pairs agree, Krippendorff's alpha 0.00 (nominal)" in " ".join(said.split())

    ended = here("report", tmp_path / "r.html", "--db", db, *options, "--by", "topic")
    assert ended.code == 0, ended
    assert "pages of topic shop" in (tmp_path / "r.html").read_text()
    folder = tmp_path / "appendix"
    study = f'[variables]\ntopic = "@{codes}"\nwords = "@{tmp_path / "own.py"}"\n'
    (tmp_path / "study.toml").write_text(study)
    assert here("export", "appendix", folder, "--db", db, "--study", tmp_path / "study.toml").code == 0
    assert (folder / "variables" / "topic.csv").read_bytes() == codes.read_bytes()
    assert here("audit", folder).code == 0
    changed = folder / "variables" / "topic.csv"
    changed.write_text(changed.read_text().replace("news", "blog", 1))
    assert "and the hand codes say blog" in here("audit", folder).out


def test_parts_may_be_of_a_column_or_of_a_file_of_sites(waves: tuple[Path, Path], tmp_path: Path) -> None:
    db = waves[1]
    found = estimates(db, "--by", "kind=CASE WHEN body_bytes > 1000 THEN 'large' ELSE 'small' END")
    assert {among for what, among in found if what == "size"} == {"pages", "pages of kind large", "pages of kind small"}
    assert found["size", "pages of kind small"]["high"] < 2000
    with closing(sqlite3.connect(db)) as store:
        sites = [site for (site,) in store.execute("SELECT DISTINCT site FROM samples ORDER BY 1")]
    listed = tmp_path / "kinds.csv"
    listed.write_text(f"site,owner\n{sites[0]}/,state\n{sites[1]}/,firm\n")
    parts, whole = estimates(db, "--by", f"owner=@{listed}"), estimates(db, "--by", "site")
    assert parts["size", "pages of owner state"]["value"] == whole["size", f"pages on site {sites[0]}"]["value"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("url,kind\nhttp://a.test/1,x\n", "name the columns url (or site), topic"),
        ("url,topic\nno url,x\n", "line 2:"),
        ("url,topic\nhttp://elsewhere.test/,x\n", "that the sample does not have"),
        ("url,topic\nhttp://a.test/,x\nhttp://a.test/,y\n", "line 3: http://a.test/ has a code already"),
    ],
)
def test_wrong_hand_codes_name_the_line(waves: tuple[Path, Path], tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / "codes.csv").write_text(text)
    ended = here("sample", "--db", waves[1], "--variable", f"topic=@{tmp_path / 'codes.csv'}")
    assert ended.code == 2
    assert named in " ".join(ended.err.split())
