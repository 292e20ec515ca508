"""The walk that says which pages a crawl of a web of files must find."""

from __future__ import annotations

from pathlib import Path


def web(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return root


def test_links_are_absolute_without_fragments_and_follow_the_base() -> None:
    from tests.bench.reference import links

    html = """<base href="/d/"><a href="x.html#1">1</a><a href=' x.html '>2</a><A HREF=../y.html?a&amp;b>3</A>
        <area href=z.html><link rel=next href=no.html><!-- <a href=no.html> --><a name=no><a href="http://[">bad</a>"""
    host = "http://a.test:1"
    assert links(f"{host}/e/p.html", html) == {f"{host}/d/x.html", f"{host}/y.html?a&b", f"{host}/d/z.html"}


def test_a_file_answers_for_a_url_within_its_host_alone(tmp_path: Path) -> None:
    from tests.bench.reference import file_of

    root = web(tmp_path, {"a.test/__index.html": "", "a.test/d/index.html": "", "a.test/ä b.html": "", "b.html": ""})
    host = root / "a.test"
    assert file_of(root, "http://a.test:1/") == host / "__index.html"
    assert file_of(root, "http://a.test:1/d/") == host / "d/index.html"
    assert file_of(root, "http://a.test:1/%C3%A4%20b.html?q") == host / "ä b.html"
    assert file_of(root, "http://a.test:1/../b.html") is None
    assert file_of(root, "http://a.test:1/d") is None


def test_the_walk_crosses_hosts_and_keeps_to_the_rule_and_to_robots_txt(tmp_path: Path) -> None:
    from tests.bench.realweb import ADDRESSES, NAMES, follow_rule
    from tests.bench.reference import walk

    a, b = "http://127.0.0.11:1", "http://127.0.0.12:1"
    front = f"<a href=x.html><a href=/private/p.html><a href=gone.html><a href=i.png><a href={b}/>"
    root = web(
        tmp_path,
        {
            "127.0.0.11/__index.html": front,
            "127.0.0.11/x.html": "<a href='http://127.0.0.12:2/y.html'>another port</a>",
            "127.0.0.11/private/p.html": "",
            "127.0.0.11/i.png": "",
            "127.0.0.12/__index.html": f"<a href={a}/><a href=y.html>",
            "127.0.0.12/y.html": "",
            "127.0.0.12/alone.html": "",
        },
    )
    assert walk(root, [f"{a}/"], follow_rule(ADDRESSES, 1)) == {f"{a}/", f"{a}/x.html", f"{b}/", f"{b}/y.html"}
    assert walk(root, [f"{a}/"], follow_rule(NAMES, 1)) == {f"{a}/"}
