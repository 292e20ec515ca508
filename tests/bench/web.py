"""`python -m tests.bench web DIR`: builds a web of real pages for `cpu`. Needs Debian; no root.

Documentation packages are downloaded and unpacked, not installed. Each becomes a host with its own address 127.0.0.N,
which needs no name. Only a part of the pages of a large package is kept. A link to a page that was left out is replaced
by a link to a kept page of any host. So a page keeps its number of links, and there are links between the hosts.
"""

from __future__ import annotations

import gzip
import json
import posixpath
import re
import shutil
import subprocess
import zlib
from argparse import ArgumentError, ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote, unquote

from tests.bench.realweb import ADDRESSES, follow_rule
from tests.bench.reference import DISALLOWED, FRONT_PAGE, walk

FIRST_ADDRESS = 11
ON_FRONT_PAGE = 60
PACKAGES = (
    "cmake-doc",
    "debian-policy",
    "debian-reference-en",
    "developers-reference",
    "erlang-doc",
    "git-doc",
    "libeigen3-doc",
    "libglib2.0-doc",
    "libgtk-3-doc",
    "python-django-doc",
    "python-pandas-doc",
    "python-scipy-doc",
    "python-sqlalchemy-doc",
    "qtbase5-doc-html",
    "rust-doc",
    "sbcl-doc",
    "sqlite3-doc",
)
LINK = re.compile(rb"""(<(?:a|area|link)\b[^>]*?\bhref=["'])([^"'#?:]+\.html?)(?=["'#?])""", re.IGNORECASE)


def main(arguments: Sequence[str]) -> None:
    parser = ArgumentParser(prog="python -m tests.bench web", description="Builds a web of real pages. Needs Debian.")
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--name", default="debian", help="the name of the web in the folder [%(default)s]")
    parser.add_argument("--cap", type=int, default=350, metavar="N", help="the most pages of a package [%(default)s]")
    parser.add_argument("--port", type=int, default=8123, help="[%(default)s]")
    parser.add_argument("--packages", nargs="+", default=PACKAGES, metavar="NAME", help="[%(default)s]")
    options = parser.parse_args(arguments)
    folder = options.folder.resolve()
    trees = [documents(unpacked(package, folder)) for package in options.packages]
    builder = Builder(folder / "www" / options.name, options.port, options.packages, trees, options.cap)
    builder.write()
    pages = walk(builder.root, builder.seeds, follow_rule(ADDRESSES, options.port))
    (folder / f"ref-{options.name}.txt").write_text("\n".join(sorted(pages)) + "\n", encoding="utf-8")
    print(f"{len(pages):,} pages on {len(options.packages)} hosts, from {builder.seeds[0]}")


def unpacked(package: str, folder: Path) -> Path:
    """The folder with the files of the package. A package that is there already is not downloaded again."""
    debs, files = folder / "debs", folder / "dl" / package
    if not files.is_dir():
        debs.mkdir(parents=True, exist_ok=True)
        files.parent.mkdir(exist_ok=True)
        if not list(debs.glob(f"{package}_*.deb")):
            run(["apt-get", "download", package], debs)
        run(["dpkg", "-x", str(max(debs.glob(f"{package}_*.deb"))), str(files)], debs)
    return files


def run(command: list[str], folder: Path) -> None:
    try:
        subprocess.run(command, cwd=folder, check=True)
    except (OSError, subprocess.CalledProcessError) as failed:
        raise ArgumentError(None, f"{' '.join(command)}: {failed}") from None


def documents(files: Path) -> dict[str, Path]:
    """The pages of a package by their path on the host. The root is the lowest folder that contains all of them."""
    found = [path for ending in ("*.html", "*.htm") for path in files.rglob(ending) if usable(path)]
    if not found:
        raise ArgumentError(None, f"{files.name} has no HTML")
    root = Path(posixpath.commonpath([path.parent for path in found]))
    return {path.relative_to(root).as_posix(): path for path in sorted(found)}


def usable(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and not path.name.startswith(".")


class Builder:
    """Writes the folders of the hosts: pages, gzipped copies, front pages, robots.txt, and meta.json for the web."""

    def __init__(
        self, root: Path, port: int, packages: Sequence[str], trees: Sequence[dict[str, Path]], cap: int
    ) -> None:
        self.root = root
        self.packages = packages
        self.trees = trees
        self.hosts = [f"127.0.0.{FIRST_ADDRESS + index}" for index in range(len(trees))]
        self.origins = [f"http://{host}:{port}" for host in self.hosts]
        self.kept = [sorted(sorted(tree, key=scattered)[:cap]) for tree in trees]
        self.all_kept = [
            f"{origin}/{quote(path)}" for origin, paths in zip(self.origins, self.kept, strict=True) for path in paths
        ]

    @property
    def seeds(self) -> list[str]:
        return [f"{self.origins[0]}/"]

    def write(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        for index, host in enumerate(self.hosts):
            folder = self.root / host
            for path in self.kept[index]:
                write_page(folder / path, self.relinked(index, path))
            write_page(folder / FRONT_PAGE, self.front_page(index))
            write_page(folder / DISALLOWED.strip("/") / "page.html", b"<title>Not for crawlers</title>")
            (folder / "robots.txt").write_text(f"User-agent: *\nDisallow: {DISALLOWED}\n", encoding="utf-8")
        facts = zip(self.hosts, self.packages, self.kept, strict=True)
        hosts = [{"host": host, "package": package, "pages": len(paths)} for host, package, paths in facts]
        meta = {"name": self.root.name, "hosts": hosts, "seeds": self.seeds}
        (self.root / "meta.json").write_text(json.dumps(meta, indent=1) + "\n", encoding="utf-8")

    def relinked(self, index: int, path: str) -> bytes:
        """A page in which each link to a page that was left out leads to another page, always to the same one."""
        kept, tree = set(self.kept[index]), self.trees[index]

        def aim(match: re.Match[bytes]) -> bytes:
            href = unquote(match[2].decode("utf-8", "replace"))
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), href)).lstrip("/")
            if target in kept or target not in tree:  # a link that is broken in the package stays broken
                return match[0]
            return match[1] + self.all_kept[scattered(target) % len(self.all_kept)].encode()

        return LINK.sub(aim, tree[path].read_bytes())

    def front_page(self, index: int) -> bytes:
        """A page with links to some pages of the host, to the other hosts, and to paths that robots.txt forbids."""
        step = max(1, len(self.kept[index]) // ON_FRONT_PAGE)
        paths = [f"/{quote(path)}" for path in self.kept[index][::step]]
        others = [f"{origin}/" for origin in self.origins if origin != self.origins[index]]
        links = [f'<li><a href="{url}">{url}</a>' for url in (*paths, *others, f"{DISALLOWED}page.html")]
        title = self.packages[index]
        return f"<!doctype html><title>{title}</title><h1>{title}</h1><ul>{''.join(links)}</ul>".encode()


def scattered(path: str) -> int:
    """A pseudo-random number for a path, always the same, which spreads the choice of pages over the package."""
    return zlib.crc32(path.encode())


def write_page(file: Path, html: bytes) -> None:
    """Write a page and its gzipped copy, which nginx sends instead."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(html)
    Path(f"{file}.gz").write_bytes(gzip.compress(html, 6, mtime=0))
