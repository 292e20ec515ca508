"""What a page could do that has taken its parser process over."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crawler.engine.parser_pool import ParserPool, ReadingOptions
from crawler.engine.sandbox import Confinement, available, environment
from crawler.errors import Fault
from crawler.model import Fetched, Reading
from tests.command import ROOT

IN_FORCE = available()

#: A program that makes a parser process evaluate the query of a URL instead of reading the page.
TAKEN_OVER = """
import os
import crawler.page.html
def read_page(body, *, url, **about):
    raise RuntimeError("returned " + repr(eval(bytes.fromhex(url.partition("?")[2]).decode())))
crawler.page.html.read_page = read_page
"""


@pytest.fixture
async def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ParserPool]:
    (tmp_path / "sitecustomize.py").write_text(TAKEN_OVER)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    async with ParserPool(ReadingOptions("figtree", Reading.STRICT)) as made:
        yield made


async def tried(pool: ParserPool, expression: str) -> str:
    """What came of an expression in a parser process."""
    url = f"http://a.example/?{expression.encode().hex()}"
    with pytest.raises(Fault) as failed:
        await pool.read(Fetched(url, 0, 0, content_type="text/html", plain=b"x"))
    return str(failed.value)


async def test_a_parser_process_knows_no_secret_of_the_environment(pool: ParserPool) -> None:
    assert "returned None" in await tried(pool, "os.environ.get('AWS_SECRET_ACCESS_KEY')")
    assert "returned True" in await tried(pool, "'PYTHONPATH' in os.environ")


@pytest.mark.skipif(not IN_FORCE.seccomp, reason="the kernel has no seccomp")
@pytest.mark.parametrize(
    "expression",
    [
        "__import__('socket').socket()",
        "__import__('socket').socket(1)",
        "os.execv('/bin/sh', ['sh'])",
        "open('/dev/null', 'w')",
        "open('/dev/null', 'rb+')",
        "os.open('/tmp/made-by-a-page', os.O_CREAT)",
    ],
)
async def test_a_parser_process_opens_no_socket_and_no_file_for_writing_and_starts_no_program(
    pool: ParserPool, expression: str
) -> None:
    assert "PermissionError" in await tried(pool, expression)


@pytest.mark.skipif(not IN_FORCE.landlock, reason="the kernel has no Landlock")
async def test_a_parser_process_reads_no_files_but_those_of_python(pool: ParserPool, tmp_path: Path) -> None:
    (secret := tmp_path.parent / "secret").write_text("secret")
    for expression in (
        f"open({str(secret)!r}).read()",
        f"open('/proc/{os.getpid()}/environ').read()",
        "os.listdir('/')",
    ):
        assert "PermissionError" in await tried(pool, expression)
    assert "returned None" in await tried(pool, "__import__('wave') and None"), "it can import what it needs"


@pytest.mark.skipif(IN_FORCE.landlock < 6, reason="Landlock of the kernel has no scopes")
async def test_a_parser_process_sends_no_signal_to_the_crawler(pool: ParserPool) -> None:
    assert "PermissionError" in await tried(pool, "os.kill(os.getppid(), 0)")


def test_the_environment_has_what_python_and_the_allocator_need() -> None:
    given = {"PYTHONPATH": "/p", "LC_ALL": "C", "PGPASSWORD": "secret", "MY_TOKEN": "secret", "HOME": "/root"}
    kept = environment(given)
    assert {name: kept[name] for name in kept if name in given} == {"PYTHONPATH": "/p", "LC_ALL": "C", "HOME": "/root"}
    assert kept["MALLOC_ARENA_MAX"] == "1"


def test_what_confines_a_process_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(Confinement(True, 7, True)) == "no new privileges, Landlock 7, seccomp"
    assert str(Confinement(True, 0, True)) == "no new privileges, seccomp"
    assert Confinement(True, 0, True).missing() == ["Landlock"]
    monkeypatch.setattr(sys, "platform", "darwin")
    assert str(available()) == "nothing"
