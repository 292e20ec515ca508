"""The documents refer only to files, headings and options that exist. Their sentences and the README are short."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import click
import pytest

from crawler.cli.shared import cli
from tests.listing import require_none

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"\[[^\]\n]*\]\((?!https?:|mailto:)([^)\s]+)\)")
_MENTION = re.compile(r"(?<![\w/.-])((?:docs|config)/[\w./-]+\.(?:md|toml|svg|png))\b")
_MODULE = re.compile(r"(?<![\w/.-])(crawler/[\w/]+\.(?:py|sql|html|css|js))\b")
_CODE_BLOCK = re.compile(r"^( *)```.*?^\1```", re.M | re.S)
_SHELL = re.compile(r"^( *)```sh\n(.*?)^\1```", re.M | re.S)
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
_INLINE = re.compile(r"`(crawler [a-z][^`\n]*)`")
_SENTENCE_END = re.compile(r"(?<=[.!?])[*_)”\"]*\s+(?=[A-Z`\[*(\"“0-9])")
#: A sentence of more words is read twice.
MOST_WORDS = 40


def tracked(*patterns: str) -> list[Path]:
    """The repository's files that match one of ``patterns`` and exist, new files included."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return [path for name in sorted(set(names)) if name and (path := ROOT / name).is_file()]


PAGES = tracked("*.md")


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", _CODE_BLOCK.sub("", page.read_text()), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> Iterator[str]:
    """The relative links of a page that lead to no file or to no heading."""
    for link in _LINK.findall(_CODE_BLOCK.sub("", page.read_text())):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


def test_relative_links_lead_to_a_file_and_a_heading() -> None:
    assert len(PAGES) > 20
    require_none(f"{page}: {link}" for page in PAGES for link in broken_links(page))


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    other.write_text("# A heading, with a comma\n")
    links = [
        "other.md",
        "other.md#a-heading-with-a-comma",
        "#own",
        "https://a.test/",
        "none.md",
        "other.md#none",
        "#none",
    ]
    page.write_text("## Own\n" + " ".join(f"[x]({link})" for link in links) + "\n```\n[x](code.md)\n```\n")
    assert list(broken_links(page)) == ["none.md", "other.md#none", "#none"]


def test_code_and_documents_mention_only_documents_that_exist() -> None:
    files = tracked("*.md", "*.py", "*.toml", "*.sql", "*.yml", ".ci/run")
    mentioned = [(file, name) for file in files for name in _MENTION.findall(file.read_text())]
    require_none(f"{file}: {name}" for file, name in mentioned if not (ROOT / name).exists())


def test_documents_mention_only_modules_that_exist() -> None:
    mentioned = [(page, name) for page in PAGES for name in _MODULE.findall(page.read_text())]
    assert len(mentioned) > 20
    require_none(f"{page}: {name}" for page, name in mentioned if not (ROOT / name).exists())


@pytest.mark.parametrize("folder", [Path(), Path("development")])
def test_the_index_of_a_folder_lists_every_page(folder: Path) -> None:
    here = ROOT / "docs" / folder
    index = (here / "README.md").read_text()
    pages = [path for path in tracked("docs/*.md") if path.parent == here and path.name != "README.md"]
    assert [path.name for path in pages if f"({path.name})" not in index] == []


# --- sentences ---


def sentences(page: str) -> Iterator[str]:
    """The sentences of a page, and those of each cell of its tables, without code and the targets of links."""
    block: list[str] = []
    for line in [*_CODE_BLOCK.sub("\n", page).splitlines(), ""]:
        text = line.strip()
        begins = re.match(r"([-*]|[0-9]+\.) ", text)
        if not text or begins or text[0] in "#|" or (line.startswith("    ") and not block):
            yield from _sentences(" ".join(block))
            block = []
        if text.startswith("|"):
            for cell in text.strip("|").split("|"):
                yield from _sentences(cell)
        elif text and not text.startswith("#") and (block or not line.startswith("    ")):
            block.append(text)


def _sentences(text: str) -> list[str]:
    plain = re.sub(r"`[^`]*`", "CODE", re.sub(r"\]\([^)]*\)", "]", text))
    return _SENTENCE_END.split(plain)


def long_sentences(page: str) -> list[str]:
    return [text for text in sentences(page) if len(re.findall(r"\S*\w\S*", text)) > MOST_WORDS]


def test_no_sentence_is_long() -> None:
    pages = tracked("docs/*.md", "README.md", "CHANGELOG.md")
    require_none(f"{page.name}: {text}" for page in pages for text in long_sentences(page.read_text()))


def test_a_long_sentence_is_found() -> None:
    short = "word " * MOST_WORDS + "[`a b c`](d e f).\n"
    long = "word " * (MOST_WORDS + 1) + ".\n"
    assert [*map(len, map(long_sentences, [short.replace("word ", "", 1), long, f"- {long}", f"| a | {long} |"]))] == [
        0, 1, 1, 1,
    ]  # fmt: skip
    assert long_sentences(f"```sh\n{long}```\n    {long}") == []


# --- commands ---


def commands(page: str) -> Iterator[list[str]]:
    """The commands in the shell blocks of a page, as words."""
    for _, block in _SHELL.findall(page):
        plain = re.sub(r"(?m)(?:^| +)#.*$", "", block.replace("\\\n", " "))
        lexer = shlex.shlex(plain, posix=True, punctuation_chars="();<>|&\n")
        lexer.whitespace, lexer.whitespace_split = " \t", True
        words: list[str] = []
        for word in [*lexer, "\n"]:
            if set(word) <= set("();<>|&\n"):
                if words[:1] == ["crawler"]:
                    yield words[:-1] if word == ">" and words[-1] == "2" else words
                words = []
            elif words or "=" not in word:  # not VARIABLE=value before a command
                words.append(word)


def mentioned(page: str) -> Iterator[str]:
    """The commands in the sentences of a page. They need not be whole."""
    yield from (text for text in _INLINE.findall(_CODE_BLOCK.sub("", page)) if not re.search(r"…|[^\\]\|", text))


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quotation that goes on behind the line
        return text.split()


def fault(words: list[str]) -> str | None:
    """Why ``crawler`` refuses a command as it is written, or None. Files need not exist."""
    words = ["0" * 64 if word == "DIGEST" else word for word in words[1:]]
    try:
        known: click.Command
        context, found, known = click.Context(cli), "crawler", cli
        while isinstance(known, click.Group):
            context = known.make_context(found, words, parent=context)
            words = context._protected_args + context.args
            if not words:  # a group that is a command by itself
                return None
            name, inner, words = known.resolve_command(context, words)
            assert name is not None
            assert inner is not None
            found, known = name, inner
        known.make_context(found, words, parent=context)
    except (click.exceptions.Exit, click.exceptions.NoArgsIsHelpError):
        return None
    except click.MissingParameter as error:
        return f"no {error.param.name if error.param else 'parameter'}"
    except click.BadParameter as error:
        return None if "exist" in error.message or "No such file" in error.message else error.message
    except click.UsageError as error:
        return error.message
    return None


def test_every_command_is_one_of_the_program() -> None:
    pages = [page for page in tracked("docs/*.md", "README.md") if page.parent.name != "examples"]
    written = [(page, words) for page in pages for words in commands(page.read_text())]
    assert len(written) > 80
    require_none(f"{page.name}: {shlex.join(words)}: {why}" for page, words in written if (why := fault(words)))


def test_every_command_in_a_sentence_is_one_of_the_program() -> None:
    pages = tracked("docs/*.md", "README.md")
    written = {(page, text) for page in pages for text in mentioned(page.read_text())}
    faults = ((page, text, fault(_words(text))) for page, text in sorted(written))
    require_none(f"{page.name}: {text}: {why}" for page, text, why in faults if why and "No such" in why)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("crawler status --db crawl.db", None),
        ("crawler settings crawl.toml", None),
        ("crawler run --no-such https://example.org/", "No such option"),
        ("crawler plane https://example.org/", "No such command"),
        ("crawler export cvs pages.csv", "not one of"),
    ],
)
def test_a_wrong_command_is_found(command: str, why: str | None) -> None:
    found = fault(command.split())
    assert found is None if why is None else why in (found or "")


def test_the_python_of_the_documents_is_python() -> None:
    for page in tracked("docs/*.md", "README.md"):
        for code in () if page.name == "api.md" else _PYTHON.findall(page.read_text()):
            compile(code, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_the_architecture_names_only_code_that_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    packages = {path.stem for path in (ROOT / "crawler").iterdir()}
    named = [name.split(".") for name in re.findall(r"`([a-z_]+(?:\.\w+)+)`", text)]
    assert [
        ".".join(parts) for parts in named if parts[0] in packages and parts[-1] != "py" and not _exists(parts)
    ] == []
    files = re.findall(r"`((?:\w+/)+\w+\.(?:py|sql))`", text)
    assert [name for name in files if not (ROOT / "crawler" / name).exists() and not (ROOT / name).exists()] == []


def _exists(parts: list[str]) -> bool:
    """Whether ``crawler`` contains this dotted name of a module or of an attribute."""
    found: object = import_module("crawler")
    for count, name in enumerate(parts, 1):
        if not hasattr(found, name):
            try:
                import_module(".".join(["crawler", *parts[:count]]))
            except ModuleNotFoundError:
                return False
        found = getattr(found, name)
    return True


@pytest.mark.parametrize(("name", "most"), [("README.md", 120), ("ARCHITECTURE.md", 200)])
def test_the_entrance_is_short(name: str, most: int) -> None:
    assert (ROOT / name).read_text().count("\n") <= most
