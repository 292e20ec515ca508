"""Thousands of virtual hosts for `broad`: addresses, a DNS server, certificates of a CA of their own, and nginx.

The hosts are `h000000.test`, `h000001.test` …; each has an address of its own. In a network namespace these are in
10.0.0.0/8, and /etc/resolv.conf names the DNS server; otherwise they are in 127.0.0.0/8, and a crawler must be told of
the DNS server. A part of the names is dead. The pages are real ones if there is a web of `realweb`, with their links
changed to lead to pages of the same host.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import random
import re
import shutil
import subprocess
import sys
import time
from argparse import ArgumentError
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from ipaddress import IPv4Address
from pathlib import Path

from tests.bench.web import write_page
from tests.name_server import NXDOMAIN, SERVFAIL, Reply, name_server

NAMES_PER_CERTIFICATE = 25
TEMPLATES = 100  # sets of pages: hosts whose numbers end alike serve the same ones
LINK = re.compile(rb"""(<(?:a|area|link)\b[^>]*?\bhref=["'])([^"'#]*)""", re.IGNORECASE)
PAGE_BYTES = (5_000, 200_000)
DNS_PORT = 53

NGINX = """
daemon off; worker_processes 1; worker_rlimit_nofile 200000; pid {folder}/pid; error_log {folder}/error.log crit; {user}
events {{ worker_connections 100000; }}
http {{
  types {{ text/html html; text/plain txt; }}
  charset utf-8; access_log off; sendfile on; tcp_nopush on; gzip_static on; absolute_redirect off;
  keepalive_timeout 60; keepalive_requests 100000; open_file_cache max=4000 inactive=600s; open_file_cache_valid 600s;
  server_names_hash_max_size 1048576; server_names_hash_bucket_size 128;
  client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
  uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
  map $host $template {{ "~(?<last>[0-9][0-9])[.]test$" $last; default 00; }}
  root "{folder}/pages/$template"; index index.html;
  server {{ listen {http} backlog=65535 default_server; }}
  {servers}
}}
"""
SERVER = """
  server {{
    listen {https} ssl{backlog}; server_name {names};
    ssl_certificate {folder}/{number}.pem; ssl_certificate_key {folder}/key.pem;
  }}"""


@dataclass(frozen=True, slots=True)
class BroadWeb:
    """The hosts, of which the share `dead` has no address, and where to reach them."""

    hosts: int
    pages: int
    """Pages of a host, the front page included."""
    dead: float
    folder: Path
    in_namespace: bool

    @property
    def ports(self) -> dict[str, int]:
        """By scheme."""
        return {"http": 80, "https": 443} if self.in_namespace else {"http": 28080, "https": 28443}

    @property
    def dns(self) -> tuple[str, int]:
        return ("127.0.0.53", DNS_PORT if self.in_namespace else 28053)

    @property
    def first_address(self) -> str:
        return "10.0.1.0" if self.in_namespace else "127.1.0.0"

    @property
    def ca_file(self) -> Path:
        return self.folder / "ca.pem"

    def origin(self, scheme: str, number: int) -> str:
        port = self.ports[scheme]
        return f"{scheme}://{host(number)}" + ("" if port in (80, 443) else f":{port}")

    def alive(self) -> list[int]:
        """The numbers of the hosts that have an address."""
        return [n for n in range(self.hosts) if (reply := drawn(n, self.dead, self.first_address)) and reply.addresses]

    def seeds(self, scheme: str) -> Path:
        """A file with the front page of each host."""
        file = self.folder / f"seeds-{scheme}.txt"
        file.write_text("".join(f"{self.origin(scheme, number)}/\n" for number in range(self.hosts)), encoding="utf-8")
        return file

    def rule(self, scheme: str) -> str:
        port = self.ports[scheme]
        return rf"^{scheme}://h[0-9]+\.test{'' if port in (80, 443) else f':{port}'}/([^?#]*(\.html|/))?([?#].*)?$"


def host(number: int) -> str:
    return f"h{number:06}.test"


@lru_cache(maxsize=200_000)
def drawn(number: int, dead: float, first_address: str) -> Reply | None:
    """The answer of DNS about a host, always the same: of 100 dead names, 40 do not exist, 30 fail, 30 are silent."""
    chance = random.Random(number)
    fate = chance.random() / dead if dead else 1.0
    ttl_s = chance.choice((5, 60, 300, 3600))
    delays_s = chance.uniform(0.001, 0.03), chance.uniform(0.05, 0.3), chance.uniform(1, 4)
    (delay_s,) = chance.choices(delays_s, (80, 18, 2))
    if fate < 0.4:
        return Reply(code=NXDOMAIN, ttl_s=ttl_s, delay_s=delay_s)
    if fate < 0.7:
        return Reply(code=SERVFAIL, delay_s=delay_s)
    if fate < 1.0:
        return None
    return Reply((str(IPv4Address(first_address) + number),), ttl_s, delay_s=delay_s)


@contextmanager
def serving(web: BroadWeb, corpus: Path | None) -> Iterator[None]:
    """Serve DNS, HTTP and HTTPS inside the context. `corpus` is a folder with real pages."""
    nginx = shutil.which("nginx", path=os.environ.get("PATH", os.defpath) + ":/usr/sbin")
    if nginx is None:
        raise ArgumentError(None, "nginx is not installed")
    if web.in_namespace:
        _set_up_namespace(web)
    _write_certificates(web)
    _write_pages(web, corpus)
    folder, user = web.folder, "user root;" if os.geteuid() == 0 else ""
    batches = range(0, web.hosts, NAMES_PER_CERTIFICATE)
    servers = "".join(
        SERVER.format(
            folder=folder,
            number=first,
            https=web.ports["https"],
            backlog="" if first else " backlog=65535",
            names=" ".join(_names(web, first)),
        )
        for first in batches
    )
    text = NGINX.format(folder=folder, user=user, http=web.ports["http"], servers=servers)
    (folder / "nginx.conf").write_text(text, encoding="utf-8")
    address, port = web.dns
    asked = [address, str(port), str(web.dead), web.first_address]
    with ExitStack() as stack:
        stack.enter_context(_running([sys.executable, "-m", "tests.bench.broad_web", *asked]))
        server = stack.enter_context(_running([nginx, "-p", folder, "-c", "nginx.conf", "-e", f"{folder}/error.log"]))
        for _ in range(300):
            if server.poll() is not None:
                raise ArgumentError(None, f"nginx ended: {(folder / 'error.log').read_text(encoding='utf-8')}")
            if (folder / "pid").exists():
                break
            time.sleep(0.1)
        yield


@contextmanager
def _running(command: Sequence[str | Path]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _set_up_namespace(web: BroadWeb) -> None:
    """All addresses of 10.0.0.0/8 are this machine's, and the system asks our DNS server."""
    resolver = web.folder / "resolv.conf"
    resolver.write_text(f"nameserver {web.dns[0]}\n", encoding="utf-8")
    for command in (
        ["ip", "link", "set", "lo", "up"],
        ["ip", "route", "add", "local", "10.0.0.0/8", "dev", "lo"],
        ["mount", "--bind", str(resolver), "/etc/resolv.conf"],
    ):
        subprocess.run(command, check=True)


def _names(web: BroadWeb, first: int) -> list[str]:
    return [host(number) for number in range(first, min(first + NAMES_PER_CERTIFICATE, web.hosts))]


def _write_certificates(web: BroadWeb) -> None:
    """A CA for this run, and a certificate for each few hosts: a wildcard cannot stand for names under a TLD."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    def named(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    def builder(subject: str, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        made = x509.CertificateBuilder().subject_name(named(subject)).issuer_name(named("broad")).public_key(key)
        made = made.serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(days=1))
        return made.not_valid_after(now + timedelta(days=2))

    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = builder("broad", ca_key.public_key()).add_extension(x509.BasicConstraints(True, 0), critical=True)
    web.ca_file.write_bytes(authority.sign(ca_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    pem, raw, plain = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (web.folder / "key.pem").write_bytes(key.private_bytes(pem, raw, plain))
    for first in range(0, web.hosts, NAMES_PER_CERTIFICATE):
        names = _names(web, first)
        made = builder(names[0], key.public_key()).add_extension(
            x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False
        )
        signed = made.sign(ca_key, hashes.SHA256()).public_bytes(pem)
        (web.folder / f"{first}.pem").write_bytes(signed)


def _write_pages(web: BroadWeb, corpus: Path | None) -> None:
    """The pages of each template: `/` links to all others, and each page links to pages of its host."""
    bodies = _bodies(corpus)
    for template in range(TEMPLATES):
        folder = web.folder / "pages" / f"{template:02}"
        links = "".join(f'<li><a href="/{page}.html">{page}</a>' for page in range(1, web.pages))
        write_page(folder / "index.html", f"<!doctype html><title>{template}</title><ul>{links}</ul>".encode())
        (folder / "robots.txt").write_text("User-agent: *\nDisallow: /private/\n", encoding="utf-8")
        for page in range(1, web.pages):
            body, packed = bodies[(template * web.pages + page) % len(bodies)], folder / f"{page}.html.gz"
            aimed = _aimed(body, web.pages)
            (folder / f"{page}.html").write_bytes(aimed)
            packed.write_bytes(gzip.compress(aimed, 1, mtime=0))


def _aimed(body: bytes, pages: int) -> bytes:
    """The page with as many links as before, all of them to pages of its host."""
    return LINK.sub(lambda found: b"%s/%d.html" % (found[1], 1 + len(found[2]) % max(1, pages - 1)), body)


def _bodies(corpus: Path | None) -> list[bytes]:
    """Some hundred real pages, or made ones of the same size and with as many links."""
    if corpus is not None:
        files = sorted(file for file in corpus.glob("www/*/*/**/*.html") if _fits(file))
        if not files:
            raise ArgumentError(None, f"{corpus} has no pages: python -m tests.bench web DIR")
        return [file.read_bytes() for file in random.Random(7).sample(files, min(400, len(files)))]
    words = b"polite crawler asks each host in turn and waits before it asks again ".split()
    chance, made = random.Random(7), []
    for number in range(100):
        texts = (b" ".join(chance.choices(words, k=40)) for _ in range(190))
        lines = b"".join(b'<p>%s <a href="x%d">%d</a>' % (text, n, n) for n, text in enumerate(texts))
        made.append(b"<!doctype html><title>%d</title>%s" % (number, lines))
    return made


def _fits(file: Path) -> bool:
    return file.is_file() and PAGE_BYTES[0] <= file.stat().st_size <= PAGE_BYTES[1]


async def _serve_dns(address: str, port: int, dead: float, first_address: str) -> None:
    asked_at: dict[str, float] = {}

    def reply_for(name: str) -> Reply | None:
        number = name.removeprefix("h").removesuffix(".test")
        if not number.isdecimal():
            return Reply(code=NXDOMAIN)
        reply = drawn(int(number), dead, first_address)
        if reply is None:
            return None
        # As a resolver does that asks others: a query that is repeated waits for the same answer.
        now = time.monotonic()
        return replace(reply, delay_s=max(0.0, asked_at.setdefault(name, now) + reply.delay_s - now))

    async with name_server(reply_for, (address, port)):
        await asyncio.Event().wait()


if __name__ == "__main__":
    import uvloop

    own_address, own_port, share, first = sys.argv[1:]
    uvloop.run(_serve_dns(own_address, int(own_port), float(share), first))
