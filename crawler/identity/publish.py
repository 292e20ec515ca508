"""The files that the operator of a crawler publishes: the page about it, its address ranges, its card and its keys.

Sources: draft-illyes-webbotauth-cbcp ("Crawler best practices"); draft-meunier-webbotauth-registry-04 for the card.
Needs the extra ``identity``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import urlsplit

from crawler.atomic_files import AtomicFiles
from crawler.cli.templates import template_environment
from crawler.clock import iso
from crawler.errors import Setting, UsageError
from crawler.identity.keys import DIRECTORY_MAX_AGE_S, SigningKey, published, read
from crawler.identity.signatures import component, content_digest, signed_fields
from crawler.model import Reading
from crawler.preferences.purposes import refusals_of
from crawler.settings.settings import Settings
from crawler.version import VERSION

#: The place of the directory on the host that ``Signature-Agent`` names without a path ("IANA Considerations").
WELL_KNOWN = "/.well-known/http-message-signatures-directory"
MEDIA_TYPE = "application/http-message-signatures-directory+json"
_TAG = "http-message-signatures-directory"


def directory(keys: Sequence[SigningKey]) -> bytes:
    """The JWK Set of the public ``keys``."""
    return json.dumps({"keys": [key.public_jwk() for key in keys]}, separators=(",", ":")).encode()


def possession_proof(
    body: bytes, keys: Sequence[SigningKey], authority: str, created: int, expires: int
) -> dict[str, str]:
    """The headers by which ``keys`` sign the directory ``body``, served by ``authority``.

    One signature for each key, as the draft's section "Possession Proof on the Directory Response" recommends. No
    signature outlives its key. Times in seconds since the epoch.
    """
    digest = content_digest(body)
    covered = (component("@authority", authority, req=True), component("content-digest", digest))
    proofs = [
        signed_fields(
            f"binding{number}" if number else "binding",
            covered,
            {
                "created": created,
                "expires": expires if key.expires_at is None else min(expires, key.expires_at),
                "keyid": key.keyid,
                "tag": _TAG,
            },
            key.private.sign,
        )
        for number, key in enumerate(keys)
    ]
    return {
        "Content-Digest": digest,
        "Signature-Input": ", ".join(proof.signature_input for proof in proofs),
        "Signature": ", ".join(proof.signature for proof in proofs),
    }


#: How long the signatures of the directory are valid, in seconds: far longer than the day after which it should be
#: published again (section "Directory Response Signature Lifetimes" of draft-ietf-webbotauth-httpsig-protocol).
PROOF_LIFETIME_S = 30 * 86400

PAGE, RANGES, CARD = "index.html", "client-ranges.json", "signature-agent-card.json"
NGINX, HEADERS = "nginx.conf", "_headers"


def block_lines(agent: str) -> str:
    """The lines of a robots.txt that close a whole site to the crawler ``agent``, in every reading."""
    return f"User-agent: {agent}\nDisallow: /\n"


def ranges(networks: Sequence[str], now: float) -> bytes:
    """The address ranges (draft-illyes-webbotauth-jafar, "Format"), as of ``now`` in seconds since the epoch."""
    prefixes = [{f"ipv{network.version}Prefix": str(network)} for network in map(ip_network, networks)]
    return json.dumps({"creationTime": iso(now), "prefixes": prefixes}, indent=2).encode() + b"\n"


def card(settings: Settings) -> bytes:
    """The Signature Agent Card of a crawler that signs, at the root of the host of its agent; its id is its URL.

    Of the parameters of the draft it has those that settings tell.
    """
    identity = settings.identity
    directory_url = urlsplit(identity.signature_agent)
    site = f"{directory_url.scheme}://{directory_url.netloc}"
    contacts = [f"mailto:{identity.contact_email}"] if identity.contact_email else []
    described: dict[str, object] = {
        "client_id": f"{site}/{CARD}",
        "client_name": identity.agent,
        "client_uri": identity.contact_url or f"{site}/",
        **({"contacts": contacts} if contacts else {}),
        "jwks_uri": site + _directory_path(identity.signature_agent),
        "web_bot_auth": {
            "expected-user-agent": identity.user_agent(VERSION),
            "rfc9309-product-token": identity.agent,
            "rfc9309-compliance": settings.robots.reading is not Reading.DRAFT1996,
            "trigger": "crawler",
            **({"purpose": ", ".join(identity.purpose)} if identity.purpose else {}),
            "ips_uri": f"{site}/{RANGES}",
        },
    }
    return json.dumps(described, indent=2, ensure_ascii=False).encode() + b"\n"


def page(settings: Settings) -> bytes:
    """The page about the crawler (draft-illyes-webbotauth-cbcp, 2), one HTML file that loads nothing."""
    identity = settings.identity
    text = _ENVIRONMENT.get_template("page.html.j2").render(
        identity=identity,
        pace=settings.politeness,
        robots=settings.robots,
        user_agent=identity.user_agent(VERSION),
        lines=block_lines(identity.agent),
        ranges=RANGES,
        card=CARD,
        refusals={purpose.value: refusals_of(purpose) for purpose in identity.purpose},
        directory=_directory_path(identity.signature_agent) if identity.signing_key else "",
    )
    return text.encode()


def publish(folder: Path, settings: Settings, now: float) -> list[Path]:
    """Write all files into ``folder``, which is the root of a web site, and return their paths.

    Raises :class:`UsageError` if a file cannot be written, without a contact, and for a key that cannot be used.
    """
    identity = settings.identity
    if not identity.contact:
        raise UsageError(
            "the owner of a site must be able to reach you: give a URL or an e-mail address, with ",
            Setting("identity.contact"),
        )
    if bool(identity.signing_key) is not bool(identity.signature_agent):
        raise UsageError(Setting("identity.signing_key"), " and ", Setting("identity.signature_agent"), " go together")
    files = {PAGE: page(settings), RANGES: ranges(identity.addresses, now)}
    if identity.signing_key:
        files[CARD] = card(settings)
        files |= _key_directory(Path(identity.signing_key), identity.signature_agent, int(now))
    paths = [folder / name for name in files]
    try:
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{error.filename}: cannot be made: {error.strerror or error}") from None
    with AtomicFiles() as writing:
        for path, data in zip(paths, files.values(), strict=True):
            writing.open(path).file.write(data)
    return paths


def _key_directory(key_file: Path, agent: str, now: int) -> dict[str, bytes]:
    """The directory of the keys in ``key_file``, and its headers in the forms of two kinds of servers."""
    keys = published(read(key_file), now)
    body = directory(keys)
    proof = possession_proof(body, keys, urlsplit(agent).netloc, now, now + PROOF_LIFETIME_S)
    headers = {"Content-Type": MEDIA_TYPE, "Cache-Control": f"max-age={DIRECTORY_MAX_AGE_S}", **proof}
    path = _directory_path(agent)
    return {
        path.removeprefix("/"): body,
        NGINX: _nginx(path, headers).encode(),
        HEADERS: "\n".join([path, *(f"  {name}: {value}" for name, value in headers.items()), ""]).encode(),
    }


def _directory_path(agent: str) -> str:
    """The path of the directory on the host of ``agent``; an origin stands for the well-known one."""
    return urlsplit(agent).path or WELL_KNOWN


def _nginx(path: str, headers: Mapping[str, str]) -> str:
    """The directory as a location of nginx. Compression would change the octets that Content-Digest is about."""
    lines = [f"    add_header {name} '{value}';" for name, value in headers.items() if name != "Content-Type"]
    return "\n".join(
        [
            "# Include this file in the server block of the site, and reload nginx whenever the file changes.",
            f"location = {path} {{",
            "    types { }",
            f"    default_type {headers['Content-Type']};",
            "    gzip off;",
            *lines,
            "}",
            *(f"location = /{name} {{ return 404; }}" for name in (NGINX, HEADERS)),
            "",
        ]
    )


def _seconds(value: float) -> str:
    return f"{value:g} seconds" if value != 1 else "1 second"


_ENVIRONMENT = template_environment("crawler.identity")
_ENVIRONMENT.filters["seconds"] = _seconds
