"""The benchmark that reads real robots.txt files."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from tests.bench.__main__ import main
from tests.bench.robots import path_for, run, site_of


def test_decisions_of_strict_alone_are_counted(tmp_path: Path) -> None:
    (tmp_path / "one.example").write_text("User-agent: *\nDisallow: x.cfm\nAllow: /a*b\nDisallow: /a\n")
    (tmp_path / "two.example").write_text("User-agent: *\nDisallow: /\nAllow: /$\n")
    rows = {row.measure: row for row in run(Namespace(files=tmp_path, agent="fig", all=True))}
    assert rows["files read"].figure == 2
    added = rows["strict refuses, both others allow: files"]
    assert (added.figure, added.note) == (
        1,
        "one.example/x.cfm (line 2, Disallow: x.cfm (read as Disallow: /x.cfm))",
    )
    assert rows["strict allows, another refuses: files"].note == "one.example/axb"
    assert rows["front pages that strict refuses and rfc9309 allows"].figure == 1
    assert rows["Allow lines of rfc9309 that strict defeats"].figure == 1
    assert rows["Allow lines with * or $ that the draft defeats and strict obeys"].figure == 1
    assert rows["worst CPU time of a file"].note.startswith(("one.example", "two.example"))


def test_a_missing_folder_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["robots"]) == 2
    assert "--files DIR" in capsys.readouterr().err


def test_names_and_values_that_are_no_urls_are_read_too() -> None:
    assert site_of("a.example") == "http://a.example"
    assert site_of("no host") == "http://site.example"
    assert path_for("/a*b$") == "/axb"
    assert path_for("x") == "/x"
