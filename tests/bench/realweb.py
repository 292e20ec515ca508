"""A web of real pages, which nginx serves from a folder on loopback.

The folder holds `www/NAME/HOST/...` (each page with its gzipped twin beside it), `www/NAME/meta.json` with the hosts
and seeds, and `ref-NAME.txt` with the URLs of the pages that a crawl must find.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from argparse import ArgumentError
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.bench.reference import FRONT_PAGE

NAMES = r"[a-z0-9-]+\.test"
ADDRESSES = r"127\.0\.0\.[0-9]+"

NGINX = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log crit; {user}
events {{ worker_connections 4096; }}
http {{
  types {{ text/html html htm; text/plain txt; }}
  default_type application/octet-stream; charset utf-8;
  access_log off; sendfile on; tcp_nopush on; gzip_static on; absolute_redirect off;
  keepalive_timeout 60; keepalive_requests 100000;
  open_file_cache max=4000 inactive=600s; open_file_cache_valid 600s;
  client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
  uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
  server {{
    {listen}
    root "{root}/$host"; index index.html;
    location = / {{ try_files /{front} =404; }}
  }}
}}
"""


@dataclass(frozen=True, slots=True)
class Web:
    """A web that can be served: all its hosts on one port."""

    root: Path
    hosts: tuple[str, ...]
    seeds: tuple[str, ...]
    reference: frozenset[str]

    @property
    def port(self) -> int:
        return urlsplit(self.seeds[0]).port or 80

    @property
    def named(self) -> bool:
        """Whether the hosts have names under `.test` instead of addresses."""
        return not self.hosts[0].startswith("127.")

    @property
    def rule(self) -> str:
        """The rule on links that every crawler gets: pages of this web, recognised by the end of their path."""
        return follow_rule(NAMES if self.named else ADDRESSES, self.port)

    def addresses(self) -> list[str]:
        return ["127.0.0.1"] if self.named else list(self.hosts)


def follow_rule(hosts: str, port: int) -> str:
    """A regular expression that means the same to Python, Scrapy and wget (POSIX)."""
    return rf"^http://{hosts}:{port}/([^?#]*(\.html?|/))?([?#].*)?$"


def load(folder: Path, name: str | None) -> Web:
    """The web `name` in `folder`. Without a name, the folder must have a single web."""
    names = sorted(meta.parent.name for meta in folder.glob("www/*/meta.json"))
    if name is None and len(names) == 1:
        name = names[0]
    if name not in names:
        has = f"has {' and '.join(names)}: choose by --name" if names else "has none: python -m tests.bench web DIR"
        raise ArgumentError(None, f"which web? {folder} {has}")
    root = (folder / "www" / name).resolve()
    meta = json.loads((root / "meta.json").read_text(encoding="utf-8"))
    reference = (folder / f"ref-{name}.txt").read_text(encoding="utf-8").split()
    hosts = tuple(str(host["host"]) for host in meta["hosts"])
    return Web(root, hosts, tuple(meta["seeds"]), frozenset(reference))


def answers(web: Web) -> bool:
    """Whether a server serves the web already."""
    seed = urlsplit(web.seeds[0])
    try:
        address = socket.gethostbyname(seed.hostname or "")
    except socket.gaierror:
        names = f"{web.hosts[0]} … {web.hosts[-1]}"
        raise ArgumentError(None, f"the hosts {names} have no address: put them into the hosts file") from None
    asked = http.client.HTTPConnection(address, web.port, timeout=5)
    try:
        asked.request("GET", seed.path, headers={"Host": seed.netloc})
        return asked.getresponse().status == 200
    except OSError:
        return False
    finally:
        asked.close()


@contextmanager
def served(web: Web) -> Iterator[None]:
    """Serve the web with nginx inside the context, unless another server serves it already."""
    if answers(web):
        yield
        return
    nginx = shutil.which("nginx", path=os.environ.get("PATH", os.defpath) + ":/usr/sbin")
    if nginx is None:
        raise ArgumentError(None, f"no server serves {web.seeds[0]}, and nginx is not installed")
    with tempfile.TemporaryDirectory(prefix="bench-nginx-") as folder:
        listen = " ".join(f"listen {address}:{web.port} backlog=4096;" for address in web.addresses())
        user = "user root;" if os.geteuid() == 0 else ""  # so that nginx may read the files of the web
        text = NGINX.format(folder=folder, user=user, listen=listen, root=web.root, front=FRONT_PAGE)
        Path(folder, "nginx.conf").write_text(text, encoding="utf-8")
        server = subprocess.Popen([nginx, "-p", folder, "-c", f"{folder}/nginx.conf", "-e", f"{folder}/error.log"])
        try:
            for _ in range(100):
                if server.poll() is not None or answers(web):
                    break
                time.sleep(0.1)
            else:
                raise ArgumentError(None, f"nginx does not serve {web.seeds[0]}")
            if server.poll() is not None:
                raise ArgumentError(None, f"nginx ended: {Path(folder, 'error.log').read_text(encoding='utf-8')}")
            yield
        finally:
            server.terminate()
            server.wait()
