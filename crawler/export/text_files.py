"""The main text of each page as a file of its own in a folder, and a list of the files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import xxhash

from crawler.clock import iso
from crawler.errors import UsageError
from crawler.export.job import Job
from crawler.export.main_text import with_links
from crawler.page.texts import Content

#: The list of the files, one JSON object a line.
LIST = "pages.jsonl"
_MAX_NAME_CHARS = 80
_UNSAFE = re.compile(r"[^0-9A-Za-z._-]+")
_COLUMNS = ("url", "title", "description", "fetched_at", "preferences", "robots_preferences")
_JSON = ("preferences", "robots_preferences")


async def write_markdown(job: Job) -> None:
    """Markdown files; each begins with the facts about the page in YAML."""
    await _write(job, ".md", lambda about, page: f"---\n{_yaml(about)}---\n\n{with_links(page, about['url'])}\n")


async def write_text(job: Job) -> None:
    """Text files."""
    await _write(job, ".txt", lambda about, page: f"{page.plain}\n")


async def _write(job: Job, suffix: str, written: Callable[[dict[str, Any], Content], str]) -> None:
    if not isinstance(job.out, Path):
        raise UsageError("the pages are files in a folder: name a folder instead of standard output")
    folder = job.files.folder(job.out, _files_listed_in(job.out))
    with (folder / LIST).open("wb") as listed:
        async for row in job.rows(job.sql("texts"), job.not_copied):
            about = {name: getattr(row, name) for name in _COLUMNS}
            about |= {name: json.loads(about[name]) if about[name] else [] for name in _JSON}
            page = await job.content_of(row)
            if page is None:
                job.unwrite()
                continue
            place = _place(row.url, suffix)
            (folder / place).parent.mkdir(exist_ok=True)
            (folder / place).write_bytes(written(about, page).encode(errors="replace"))
            listed.write(json.dumps({"file": place, **about}).encode() + b"\n")


def _files_listed_in(folder: Path) -> set[str] | None:
    """The files that an earlier export wrote, by its list; ``None`` if there is no such list."""
    try:
        with (folder / LIST).open("rb") as listed:
            return {LIST, *(str(json.loads(line)["file"]) for line in listed)}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _place(url: str, suffix: str) -> str:
    """The path of the file of a page: a folder for its host, the end of its path, and a hash of its URL."""
    parts = urlsplit(url)
    host = _UNSAFE.sub("_", parts.netloc)
    name = _UNSAFE.sub("-", unquote(parts.path)).strip("-.")[-_MAX_NAME_CHARS:] or "index"
    return f"{host}/{name}-{xxhash.xxh3_64_hexdigest(url.encode())[:10]}{suffix}"


def _yaml(about: dict[str, Any]) -> str:
    """The values as YAML; JSON in one line is YAML, and so is a time in ISO 8601."""
    lines = {name: json.dumps(value) for name, value in about.items() if value}
    lines["fetched_at"] = iso(about["fetched_at"])
    return "".join(f"{name}: {value}\n" for name, value in lines.items())
