"""What refuses a crawl before it begins: settings that contradict each other, or lack what they need.

No module here sends anything, so that ``crawler plan`` starts without the HTTP client.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from crawler.errors import Setting, UsageError, requiring
from crawler.fetch.address_guard import refusal as address_refusal
from crawler.identity import load as load_identity
from crawler.page.headers import PDF
from crawler.sampling import require_drawable
from crawler.session.hooks import hooks_of
from crawler.settings.crawl_scope import may_contact
from crawler.settings.keys import terminal_name
from crawler.settings.settings import Settings
from crawler.url import address_for, host_of, is_loopback, literal_address

if TYPE_CHECKING:
    from crawler.fetch.client import Signer

_SEEDS_SHOWN = 5


def refusals(settings: Settings, seeds: Sequence[str], strata: Mapping[str, str]) -> Iterator[UsageError]:
    """Why a run with these settings would be refused, as far as the store does not matter."""

    def require_alone_here() -> None:
        if settings.workers.count > 1:
            require_alone(settings, "leave out the number of workers")

    def require_sample() -> None:
        if settings.sample.size is not None:
            require_drawable(settings, seeds, strata)

    for require in (
        partial(require_usable_proxy, settings),
        partial(hooks_of, settings.hooks),
        partial(require_contact, settings, seeds),
        partial(request_signer, settings),
        partial(require_extras, settings),
        require_sample,
        require_alone_here,
    ):
        try:
            require()
        except UsageError as error:
            yield error


def require_contact(settings: Settings, seeds: Sequence[str]) -> None:
    """Raise :class:`UsageError` if a seed is not on loopback and no contact is set."""
    if settings.identity.contact:
        return
    outside = next((url for url in seeds if not may_contact(settings, host_of(url))), None)
    if outside is not None:
        raise UsageError(
            f"{outside} is not on loopback: give a URL or an e-mail address at which the owner of the site can reach "
            "you, with ",
            Setting("identity.contact"),
        )


def require_usable_proxy(settings: Settings) -> None:
    """Raise :class:`UsageError` for settings that exclude a proxy: it looks names up, and it is not on loopback."""
    if not settings.fetch.proxy:
        return
    if settings.fetch.resolve:
        raise UsageError(Setting("fetch.resolve"), " has no effect with ", Setting("fetch.proxy"))
    if not settings.identity.contact:
        raise UsageError(
            Setting("fetch.proxy"),
            " needs a URL or an e-mail address at which the owner of a site can reach you, with ",
            Setting("identity.contact"),
        )


def require_alone(settings: Settings, remedy: str) -> None:
    """Raise :class:`UsageError`, with ``remedy``, for settings that one worker alone can carry out.

    Several workers could not tell when the sampling frame is complete, what is left of a day's budget of revisits, or
    what an archive holds.
    """
    for asked, key in (
        (settings.sample.size is not None, "sample.size"),
        (settings.revisit.enabled, "revisit.enabled"),
        (settings.output.warc, "output.warc"),
    ):
        if asked:
            raise UsageError(f"this needs a single worker; {remedy}", key=key)


def at_refused_addresses(settings: Settings, seeds: Iterable[str]) -> list[str]:
    """The seeds that a run leaves out because the address guard refuses their address, if that needs no look-up."""
    fetch, refused = settings.fetch, list[str]()
    for url in seeds:
        host = host_of(url)
        known = (
            address_for(host, fetch.resolve) or literal_address(host) or ("127.0.0.1" if is_loopback(host) else None)
        )
        if known and address_refusal(str(known), allow_private=fetch.allow_private, loopback_only=False):
            refused.append(url)
    return refused


def seeds_at_refused_addresses(refused: Sequence[str]) -> str:
    """The seeds of :func:`at_refused_addresses` as a part of a sentence: which they are, and what they need."""
    more = f" … ({len(refused):,} in all)" if len(refused) > _SEEDS_SHOWN else ""
    needed = terminal_name(Setting("fetch.allow_private"))
    return f"seeds at no public address, which need {needed}: {', '.join(refused[:_SEEDS_SHOWN])}{more}"


def request_signer(settings: Settings) -> Signer | None:
    """The signer of requests by Web Bot Auth; ``None`` without a key file. Raises :class:`UsageError`."""
    identity = settings.identity
    if not identity.signing_key and not identity.signature_agent:
        return None
    if not identity.signing_key:
        raise UsageError(
            "no key signs requests for ",
            Setting("identity.signature_agent", identity.signature_agent),
            ": name the file of `crawler identity new` with ",
            Setting("identity.signing_key"),
        )
    if not identity.signature_agent:
        raise UsageError(
            "nobody can verify the signatures: name the https URL at which the keys are published, with ",
            Setting("identity.signature_agent"),
        )
    signing = load_identity("signer")
    keys = signing.KeyFile(Path(identity.signing_key))
    signer: Signer = signing.WebBotAuth(
        keys, identity.signature_agent, identity.signature_form, identity.signature_lifetime_s
    )
    return signer


def require_extras(settings: Settings) -> None:
    """Raise :class:`UsageError` if a library that the crawl needs is not installed."""
    with requiring("documents", "a PDF file"):  # the parser processes import it
        if PDF in settings.fetch.types and find_spec("pypdfium2") is None:
            raise ModuleNotFoundError(name="pypdfium2")
