"""A crawl that signs its requests: every request and every hop, with several workers, and the key nowhere else."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from crawler.identity.keys import read
from crawler.identity.publish import directory
from crawler.settings.settings import SignatureForm
from tests.botgate import needs_botgate, verdict
from tests.command import HASTY, LOOPBACK, Ended, crawler, here

AGENT = "https://crawler.example"
SIGNED = ("Signature-Agent", "Signature-Input", "Signature")


class Server(ThreadingHTTPServer):
    """Two hosts: ``a.test/`` redirects to ``/b`` and from there to ``b.test/c``. Keeps what was asked and seen."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.demand = ""  # the value of Accept-Signature; a request that does not meet it is refused
        self.processes: list[bytes] = []

    def url(self, host: str, path: str) -> str:
        return f"http://{host}:{self.server_address[1]}{path}"


class Handler(BaseHTTPRequestHandler):
    """Answers, and looks at the list of processes meanwhile."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        signed = {name: self.headers[name] for name in SIGNED if name in self.headers}
        self.server.asked.append((self.headers["Host"], self.path, signed))
        self.server.processes.append(subprocess.run(["ps", "-ewwo", "args"], capture_output=True, check=True).stdout)
        if self.server.demand.partition(";")[0] not in self.headers["Signature-Input"]:
            self.send_response(403)
            self.send_header("Accept-Signature", self.server.demand)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        target = {"/": "/b", "/b": self.server.url("b.test", "/c")}.get(self.path)
        body = b"" if self.path == "/robots.txt" else b"<title>c</title>"
        self.send_response(302 if target else 200)
        if target:
            self.send_header("Location", target)
        self.send_header("Content-Type", "text/plain" if self.path == "/robots.txt" else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "identity.jwks"
    assert here("identity", "new", path).code == 0
    return path


def run(
    server: Server,
    folder: Path,
    key: Path,
    *options: str | Path,
    form: SignatureForm = SignatureForm.DICTIONARY,
    fresh: bool = False,
) -> Ended:
    signing = f'signing_key = "{key}"\nsignature_agent = "{AGENT}/"\nsignature_form = "{form}"\n'
    (folder / "hasty.toml").write_text(f"{HASTY}\n[identity]\n{signing}")
    config = ("--config", folder / "hasty.toml", "--db", folder / "crawl.db", "--scope", "any", "--log-level", "debug")
    return crawler("run", server.url("a.test", "/"), *config, *LOOPBACK, *options, fresh=fresh)


@needs_botgate
@pytest.mark.parametrize(("workers", "form"), [(1, SignatureForm.DICTIONARY), (2, SignatureForm.STRING)])
def test_every_request_and_every_hop_is_signed_anew(
    server: Server, tmp_path: Path, key: Path, workers: int, form: SignatureForm
) -> None:
    """A crawl asks for every URL, and the verifier accepts the signature of each request."""
    ended = run(server, tmp_path, key, "--workers", str(workers), form=form)
    assert ended.code == 0, ended.err
    assert {(host.partition(":")[0], path) for host, path, _ in server.asked} == {
        ("a.test", "/robots.txt"),
        ("a.test", "/"),
        ("a.test", "/b"),
        ("b.test", "/robots.txt"),
        ("b.test", "/c"),
    }
    assert len({signed["Signature"] for _, _, signed in server.asked}) == len(server.asked)
    keys = directory(read(key))
    for host, _, signed in server.asked:
        assert verdict(tmp_path, keys, host, signed, form) == ("valid", set())


def test_a_demand_for_another_signature_is_met_once_for_each_site(server: Server, tmp_path: Path, key: Path) -> None:
    """The first request to each site is refused for its signature, sent again as asked, and the later ones are too."""
    server.demand = 'x=("@authority" "@path" "signature-agent");created;expires;tag="web-bot-auth"'
    ended = run(server, tmp_path, key)
    assert ended.code == 0, ended.err
    assert [(host[0], path) for host, path, _ in server.asked] == [
        *[("a", "/robots.txt")] * 2,
        ("a", "/"),
        ("a", "/b"),
        *[("b", "/robots.txt")] * 2,
        ("b", "/c"),
    ]
    with sqlite3.connect(tmp_path / "crawl.db") as db:
        kinds = db.execute("SELECT status, error_kind FROM requests WHERE error_kind IS NOT NULL").fetchall()
    assert kinds == [(403, "signature")] * 2
    assert here("audit", "--db", tmp_path / "crawl.db").code == 0


def test_the_private_key_is_nowhere_but_in_its_file(server: Server, tmp_path: Path, key: Path) -> None:
    """It is in no store, archive, log, report, output and list of processes. The archive has the signatures."""
    ended = run(server, tmp_path, key, "--warc", tmp_path / "warc", fresh=True)  # a process with arguments of its own
    assert ended.code == 0, ended.err
    assert here("report", tmp_path / "report.html", "--db", tmp_path / "crawl.db").code == 0
    assert here("audit", "--db", tmp_path / "crawl.db", "--report", tmp_path / "audit.md").code == 0
    shown = here("identity", "show", key)
    secret = json.loads(key.read_text())["keys"][0]["d"]
    forms = [
        secret.encode(),
        read(key)[0].private.private_bytes_raw(),
        read(key)[0].private.private_bytes_raw().hex().encode(),
    ]
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path != key]
    assert {path.suffix for path in files} >= {".db", ".gz", ".html", ".md"}
    texts = [path.read_bytes() for path in files] + [
        gzip.decompress(path.read_bytes()) for path in files if path.suffix == ".gz"
    ]
    said = [each.encode() for each in (ended.out, ended.err, shown.out, shown.err)]
    for text in [*texts, *said, *server.processes]:
        assert not any(form in text for form in forms)
    assert any(b"hasty.toml" in text for text in server.processes)  # the list has the command of this crawl
    assert any(re.search(rb"(?m)^Signature: sig1=:", text) for text in texts)


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        (f'signing_key = "none.jwks"\nsignature_agent = "{AGENT}"', "identity new"),
        ('signing_key = "none.jwks"', "identity.signature_agent"),
        (f'signature_agent = "{AGENT}"', "identity.signing_key"),
        ('signature_agent = "http://crawler.example"', "https"),
    ],
)
def test_what_cannot_be_signed_ends_a_run_before_it_begins(tmp_path: Path, toml: str, told: str) -> None:
    (tmp_path / "c.toml").write_text(f"[identity]\n{toml}\n")
    ended = crawler("run", "http://127.0.0.1:1/", "--db", tmp_path / "c.db", "--config", tmp_path / "c.toml")
    assert ended.code == 2
    assert told in ended.err
    assert not (tmp_path / "c.db").exists()
