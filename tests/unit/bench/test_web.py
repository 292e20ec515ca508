"""The web that the benchmark builds: links lead to what was kept."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from tests.bench.realweb import ADDRESSES, follow_rule
from tests.bench.reference import walk
from tests.bench.web import Builder, documents


def package(folder: Path, pages: dict[str, str]) -> dict[str, Path]:
    for name, html in pages.items():
        file = folder / "usr/share/doc" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(html, encoding="utf-8")
    return documents(folder)


def test_links_to_pages_left_out_lead_to_kept_ones_and_all_are_reached(tmp_path: Path) -> None:
    names = [f"p{n}.html" for n in range(20)]
    many = package(
        tmp_path / "many", {n: f"<a href='{t}#f'>{t}</a>" for n, t in zip(names, names[1:] + names[:1], strict=True)}
    )
    few = package(tmp_path / "few", {"d/one.html": "<a href='gone.html'>", "d/e/two.htm": '<a href="../one.html?q">'})
    assert sorted(few) == ["e/two.htm", "one.html"]
    builder = Builder(tmp_path / "www/w", 1, ["many", "few"], [many, few], 5)
    builder.write()
    pages = walk(builder.root, builder.seeds, follow_rule(ADDRESSES, 1))
    fronts = {"http://127.0.0.11:1/", "http://127.0.0.12:1/"}
    assert pages == fronts | set(builder.all_kept) | {"http://127.0.0.12:1/one.html?q"}
    assert len(builder.kept[0]) == 5
    for url in builder.all_kept[:5]:
        html = (builder.root / url.removeprefix("http://").replace(":1", "")).read_text(encoding="utf-8")
        target = html.split("'")[1].removesuffix("#f")
        assert target in builder.kept[0] or target in builder.all_kept
    assert (builder.root / "127.0.0.12/one.html").read_text(encoding="utf-8") == "<a href='gone.html'>"


def test_every_page_has_its_gzipped_twin_and_the_web_describes_itself(tmp_path: Path) -> None:
    tree = package(tmp_path / "p", {"a.html": "<p>a"})
    builder = Builder(tmp_path / "www/w", 1, ["p"], [tree], 5)
    builder.write()
    host = builder.root / "127.0.0.11"
    assert gzip.decompress((host / "a.html.gz").read_bytes()) == b"<p>a"
    meta = json.loads((builder.root / "meta.json").read_text(encoding="utf-8"))
    assert meta == {
        "name": "w",
        "hosts": [{"host": "127.0.0.11", "package": "p", "pages": 1}],
        "seeds": ["http://127.0.0.11:1/"],
    }
    assert "Disallow: /private/" in (host / "robots.txt").read_text(encoding="utf-8")
