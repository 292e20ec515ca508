"""The first example of each guide runs on a small crawl. ``test_documents.py`` parses the commands of all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.demo.pages import Page, plain
from tests.command import LOOPBACK, ROOT, here
from tests.unit.test_documents import commands
from tests.web import LoopbackWeb

GUIDES = (
    "appendix",
    "audit",
    "backups",
    "duplicates",
    "export",
    "revisits",
    "samples",
    "search",
    "seeds",
    "store",
    "troubleshooting",
)
#: Commands that send requests or serve pages: other tests run these.
SENDING = ("run", "demo", "dashboard", "serve-search", "rup", "hint")
HOST = "home.test"
SITE = {
    "/": Page("<html lang=en><title>Museum</title>" + "".join(f"<a href=/{n}>{n}</a>" for n in range(6))),
    **{f"/{n}": Page(f"<html lang=en><title>Room {n}</title><p>The museum has a room {n}.") for n in range(6)},
    "/robots.txt": plain("User-agent: *\nDisallow: /3\n"),
}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with a crawl that drew a sample, and its seed."""
    folder = tmp_path_factory.mktemp("guides")
    with pytest.MonkeyPatch.context() as patch, LoopbackWeb({HOST: SITE}) as web:
        patch.chdir(folder)
        seed = web.url(HOST, "/")
        drawing = ("--delay", "0", "--max-depth", "1", "--sample", "4", "--per", "site")
        assert here("run", seed, *LOOPBACK, *drawing).code == 0
    return folder, seed


def first_example(guide: str) -> list[list[str]]:
    """The commands of the first shell block of a guide that send nothing."""
    page = (ROOT / "docs" / f"{guide}.md").read_text()
    begin = page.index("```sh\n")
    block = page[begin : page.index("\n```", begin) + 4]
    return [words[1:] for words in commands(block) if words[1] not in SENDING]


@pytest.mark.parametrize("guide", GUIDES)
def test_the_first_example_of_a_guide_runs(
    guide: str, crawled: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, seed = crawled
    monkeypatch.chdir(folder)
    example = first_example(guide)
    assert example
    for words in example:
        if "DIGEST" in words:
            continue
        given = {"URL": seed, "https://example.org/": seed, "/backup/crawl.db": "copy.db"}
        ended = here(*(given.get(word, word) for word in words))
        assert ended.code == 0, f"{words}: {ended.err}"
