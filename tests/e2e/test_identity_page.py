"""The page about the crawler and the files beside it (draft-illyes-webbotauth-cbcp), and the contacts that name it."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from crawler.clock import SystemClock
from crawler.demo.pages import Page
from crawler.identity.signer import KeyFile, WebBotAuth
from crawler.model import Reading
from crawler.settings.loading import settings_from
from crawler.settings.settings import SignatureForm
from crawler.version import VERSION
from tests.botgate import discovered_identity, needs_botgate
from tests.command import LOOPBACK, Ended, here
from tests.orphans import BOUND
from tests.ports import reserved_port
from tests.web import LoopbackWeb

URL, MAIL = "https://crawler.example/bot", "ops@crawler.example"
TEXTS = """
[identity]
agent = "TownCrawler"
operator = "The <b>University</b> of Aldermere"
about = "A study of language change"
data_use = "Words are counted & kept for ten years"
purpose = ["archive", "research"]
addresses = ["192.0.2.0/28", "2001:db8:7::/64", "198.51.100.7"]
"""


class Served(SimpleHTTPRequestHandler):
    """Serves a folder with the headers of its file ``_headers``, as services for static sites do."""

    def end_headers(self) -> None:
        path, *lines = (Path(self.directory) / "_headers").read_text().splitlines()
        if self.path == path:
            for line in lines:
                self.send_header(*line.strip().split(": ", 1))
        super().end_headers()

    def guess_type(self, _: object) -> str:
        return "text/html"

    def send_header(self, keyword: str, value: str) -> None:
        if (keyword, value) != ("Content-type", "text/html"):
            super().send_header(keyword, value)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """The origin of a server of the folder ``www``."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Served, directory=str(tmp_path / "www"))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def write_page(folder: Path, *options: str | Path, toml: str = "") -> Ended:
    (folder / "c.toml").write_text(TEXTS + toml)
    return here("identity", "page", folder / "www", "--config", folder / "c.toml", *options)


def signing(key: Path, agent: str) -> str:
    return f'signing_key = "{key}"\nsignature_agent = "{agent}"\n'


def text_of_page(folder: Path) -> str:
    return (folder / "www" / "index.html").read_text()


@pytest.mark.parametrize("reading", Reading)
def test_cbcp_how_the_crawler_can_be_blocked(tmp_path: Path, reading: Reading) -> None:
    """The lines on the page close everything in every reading, also in a file that opens everything to others."""
    assert write_page(tmp_path, "--contact", MAIL).code == 0
    found = re.search('<pre id="robots">(.*?)</pre>', text_of_page(tmp_path), re.DOTALL)
    assert found is not None
    lines = html.unescape(found[1])
    urls = [f"https://a.example{path}" for path in ("/", "/a?b", "/index.html", "/%7Ea/", "/humans.txt")]
    for text in (lines, f"User-agent: *\nDisallow:\n\n{lines}", f"{lines}\nUser-agent: *\nAllow: /\n"):
        (tmp_path / "robots.txt").write_text(text)
        cases = "".join(
            json.dumps({"robots": text, "agent": "TownCrawler", "url": url, "reading": reading}) + "\n" for url in urls
        )
        done = here("robots", "check", "--jsonl", stdin=cases.encode())
        assert [json.loads(line)["allowed"] for line in done.out.splitlines()] == [False] * len(urls)


def test_cbcp_the_page_says_who_why_what_and_how_often(tmp_path: Path) -> None:
    ended = write_page(tmp_path, "--contact", URL, "--contact", MAIL)
    assert (ended.code, ended.err) == (0, "")
    text = text_of_page(tmp_path)
    assert "The &lt;b&gt;University&lt;/b&gt; of Aldermere" in text
    for said in (
        "A study of language change",
        "Words are counted &amp; kept",
        f'href="mailto:{MAIL}"',
        f'href="{URL}"',
        f"TownCrawler/{VERSION} (+{URL})",
        "The declared uses are: archive, research.",
        "2 seconds",
        "renders no pages",
    ):
        assert said in text
    assert '<link rel="client-ranges" href="client-ranges.json"' in text
    assert "Signature-Agent" not in text
    assert not (tmp_path / "www" / "signature-agent-card.json").exists()
    assert not (tmp_path / "www" / ".well-known").exists()


def test_the_page_names_the_statements_that_refuse_each_declared_use(tmp_path: Path) -> None:
    """docs/protocols.md, section 7: only ``tdm`` is about research, and nothing about archives."""
    assert write_page(tmp_path, "--contact", MAIL).code == 0
    text = text_of_page(tmp_path)
    assert "<li>archive: no statement about use refuses this one." in text
    assert "<li>research: <code>tdm-reservation: 1</code> (a header, or a META tag).</li>" in text
    assert "Content-Usage" not in text
    assert "Content-Signal" not in text


def test_cbcp_what_the_page_does_not_say_is_told(tmp_path: Path) -> None:
    ended = here("identity", "page", tmp_path / "www", "--contact", MAIL)
    assert ended.code == 0
    assert [line.rpartition(" ")[2] for line in ended.err.splitlines()] == [
        "identity.operator",
        "identity.about",
        "identity.data_use",
    ]
    assert here("identity", "page", tmp_path / "www").code == 2


def test_jafar_format(tmp_path: Path) -> None:
    """draft-illyes-webbotauth-jafar, "Format"."""
    assert write_page(tmp_path, "--contact", MAIL).code == 0
    ranges = json.loads((tmp_path / "www" / "client-ranges.json").read_text())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", ranges.pop("creationTime"))
    assert ranges == {
        "prefixes": [
            {"ipv4Prefix": "192.0.2.0/28"},
            {"ipv6Prefix": "2001:db8:7::/64"},
            {"ipv4Prefix": "198.51.100.7/32"},
        ]
    }


@pytest.mark.parametrize("path", ["", "/keys/jwks.json"], ids=["origin", "url"])
def test_registry_the_card_names_files_that_are_there(tmp_path: Path, path: str) -> None:
    """draft-meunier-webbotauth-registry-04: the card has the URL of itself, and those of the keys and the ranges."""
    key, origin = tmp_path / "identity.jwks", "https://bot.example"
    assert here("identity", "new", key).code == 0
    assert write_page(tmp_path, "--contact", MAIL, toml=signing(key, origin + path)).code == 0
    card = json.loads((tmp_path / "www" / "signature-agent-card.json").read_text())
    extended = card["web_bot_auth"]
    for url in (card["client_id"], card["jwks_uri"], extended["ips_uri"]):
        assert url.startswith(f"{origin}/")
        assert (tmp_path / "www" / url.removeprefix(f"{origin}/")).is_file()
    assert (card["client_name"], card["client_uri"], card["contacts"]) == (
        "TownCrawler",
        f"{origin}/",
        [f"mailto:{MAIL}"],
    )
    assert extended["expected-user-agent"] == f"TownCrawler/{VERSION} (+mailto:{MAIL})"
    assert (extended["rfc9309-product-token"], extended["trigger"]) == ("TownCrawler", "crawler")
    assert extended["purpose"] == "archive, research"
    assert extended["rfc9309-compliance"] is True
    assert 'href="signature-agent-card.json"' in text_of_page(tmp_path)


@needs_botgate
@pytest.mark.parametrize("path", ["", "/keys/jwks.json"], ids=["origin", "url"])
def test_draft_key_distribution_and_discovery(tmp_path: Path, served: str, path: str) -> None:
    """The verifier finds the directory by an origin; a URL with a path is the directory itself."""
    key = tmp_path / "identity.jwks"
    assert here("identity", "new", key).code == 0
    assert "run `crawler identity page` again" in here("identity", "rotate", key).err
    assert write_page(tmp_path, "--contact", MAIL, toml=signing(key, served + path)).code == 0
    body = (tmp_path / "www" / (path or "/.well-known/http-message-signatures-directory")[1:]).read_bytes()
    shown = here("identity", "show", key, "--json")
    assert json.loads(body) == json.loads(shown.out)
    assert len(json.loads(body)["keys"]) == 2
    where = path or "/.well-known/http-message-signatures-directory"
    assert f'href="{where}"' in text_of_page(tmp_path)
    headers = (tmp_path / "www" / "_headers").read_text()
    nginx = (tmp_path / "www" / "nginx.conf").read_text()
    assert nginx.count(f"location = {where} {{") == 1
    for name, value in re.findall(r"^  ([\w-]+): (.*)$", headers, re.M):
        assert f"{name} '{value}';" in nginx or (name == "Content-Type" and f"default_type {value};" in nginx)
    if not path:
        agent = settings_from({"identity.signature_agent": served}, source="test").identity.signature_agent
        signer = WebBotAuth(KeyFile(key), agent, SignatureForm.DICTIONARY, 60)
        signed = signer.headers("GET", "https://example.org/a?b", "example.org", {}, SystemClock().now())
        assert discovered_identity(tmp_path, "example.org", signed) == "valid"


NGINX = shutil.which("nginx", path=os.environ.get("PATH", os.defpath) + ":/usr/sbin")


@contextmanager
def nginx(folder: Path, port: int) -> Iterator[None]:
    """An nginx that serves the folder ``www`` on ``port``, with its file ``nginx.conf``, and compresses all it can."""
    assert NGINX is not None
    www, own = folder / "www", folder / "nginx"
    own.mkdir()
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    (own / "nginx.conf").write_text(f"""
        {"user root;" if os.geteuid() == 0 else ""}
        daemon off; pid {own}/pid; error_log {own}/errors; events {{ }}
        http {{
            access_log off; gzip on; gzip_types *; gzip_min_length 1;
            {" ".join(f"{kind}_temp_path {own}/{kind};" for kind in kinds)}
            server {{ listen 127.0.0.1:{port}; root {www}; include {www}/nginx.conf; }}
        }}""")
    with subprocess.Popen([*BOUND, NGINX, "-p", own, "-c", own / "nginx.conf", "-e", own / "errors"]) as server:
        try:
            while not is_listening(port):
                assert server.poll() is None, (own / "errors").read_text()
                time.sleep(0.02)
            yield
        finally:
            server.terminate()


def is_listening(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


@needs_botgate
@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
def test_the_directory_that_nginx_serves_is_valid(tmp_path: Path) -> None:
    """The headers and the octets are those that were signed, also in a server that compresses everything else."""
    key, port = tmp_path / "identity.jwks", reserved_port()
    origin = f"http://127.0.0.1:{port}"
    assert here("identity", "new", key).code == 0
    assert write_page(tmp_path, "--contact", MAIL, toml=signing(key, origin)).code == 0
    path = "/.well-known/http-message-signatures-directory"
    with nginx(tmp_path, port):
        with urlopen(Request(origin + path, headers={"Accept-Encoding": "gzip"})) as answer:
            assert answer.read() == (tmp_path / "www" / path[1:]).read_bytes()
            headers = answer.headers
        said = (tmp_path / "www" / "_headers").read_text()
        for name, value in re.findall(r"^  ([\w-]+): (.*)$", said, re.M):
            assert headers.get_all(name) == [value]
        agent = settings_from({"identity.signature_agent": origin}, source="test").identity.signature_agent
        signer = WebBotAuth(KeyFile(key), agent, SignatureForm.DICTIONARY, 60)
        signed = signer.headers("GET", "https://example.org/a?b", "example.org", {}, SystemClock().now())
        assert discovered_identity(tmp_path, "example.org", signed) == "valid"
        for name in ("nginx.conf", "_headers"):
            assert (tmp_path / "www" / name).exists()
            with pytest.raises(HTTPError, match="404"):
                urlopen(f"{origin}/{name}")
        with urlopen(Request(origin + "/", headers={"Accept-Encoding": "gzip"})) as answer:
            assert answer.headers["Content-Encoding"] == "gzip"


@pytest.mark.parametrize(
    ("contacts", "agent", "sender"),
    [
        ((f"mailto:{MAIL}, {URL}",), URL, MAIL),
        ((MAIL,), f"mailto:{MAIL}", MAIL),
    ],
)
def test_cbcp_the_user_agent_names_the_page(
    loopback: LoopbackWeb, tmp_path: Path, contacts: tuple[str, ...], agent: str, sender: str
) -> None:
    loopback.sites["a.test"] = {"/": Page("<title>a</title>")}
    given = [part for contact in contacts for part in ("--contact", contact)]
    assert here("run", loopback.url("a.test"), "--db", tmp_path / "c.db", *LOOPBACK, *given).code == 0
    assert {hit.user_agent for hit in loopback.log} == {f"PoliteCrawler/{VERSION} (+{agent})"}
    report = here("audit", "--db", tmp_path / "c.db", "--report", tmp_path / "audit.md")
    assert report.code == 0
    assert f"PoliteCrawler/{VERSION} (+{agent})" in (tmp_path / "audit.md").read_text()
    assert here("export", "warc", tmp_path / "c.warc", "--db", tmp_path / "c.db").code == 0
    senders = re.findall(rb"^From: (.*)\r$", (tmp_path / "c.warc").read_bytes(), re.M)
    assert [address.decode() for address in senders] == ([sender] if sender else [])


@pytest.mark.parametrize("contacts", [(URL, URL + "2"), (MAIL, "b@example.org"), (URL, "me")])
def test_two_contacts_of_one_kind_are_refused(tmp_path: Path, contacts: tuple[str, ...]) -> None:
    given = [part for contact in contacts for part in ("--contact", contact)]
    ended = here("run", "https://a.example/", "--db", tmp_path / "c.db", *given)
    assert ended.code == 2
    assert f"--contact {contacts[0]} {contacts[1]}: must be" in ended.err
