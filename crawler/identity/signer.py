"""Signs requests by Web Bot Auth (draft-ietf-webbotauth-httpsig-protocol)."""

from __future__ import annotations

import logging
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import urandom
from pathlib import Path

from http_sf import ser

from crawler.errors import UsageError
from crawler.identity.demands import ALGORITHM, TAG, Demand, Identifier, Message, covered, demanded
from crawler.identity.keys import SigningKey, read, signing
from crawler.identity.signatures import Component, signed_fields
from crawler.settings.settings import SignatureForm
from crawler.url import split

_LOG = logging.getLogger("crawler.identity")

_LABEL = "sig1"
_NONCE_BYTES = 32
#: How often the key file is looked at, in seconds: a rotation reaches a running crawl within this time.
_CHECK_EVERY_S = 60
#: The sites whose demands are remembered.
_SITES_KEPT = 10_000


class KeyFile:
    """The keys in a file, read again when the file has changed."""

    def __init__(self, path: Path) -> None:
        """Read the keys. Raises :class:`UsageError` as :func:`crawler.identity.keys.read` does."""
        self._path = path
        self._keys = read(path)
        self._changed_at = path.stat().st_mtime_ns
        self._checked_at = 0.0

    def at(self, now: float) -> Sequence[SigningKey]:
        """The keys. If the file has become unreadable, the ones before: signatures by them are still valid."""
        if abs(now - self._checked_at) >= _CHECK_EVERY_S:
            self._checked_at = now
            try:
                changed_at = self._path.stat().st_mtime_ns
                if changed_at != self._changed_at:
                    self._keys = read(self._path)
                    self._changed_at = changed_at
            except (OSError, UsageError) as error:
                _LOG.warning("the key file cannot be read again: %s", error)
        return self._keys


@dataclass(slots=True)
class _Demands:
    """The signatures that a site asks for. ``has_nonce``: the last request had the nonce that the site chose."""

    wanted: tuple[Demand, ...]
    nonces: dict[str, str]  # by label, for the next request alone
    has_nonce: bool = False


class WebBotAuth:
    """Signs each request, with the key that is current; see :class:`crawler.fetch.client.Signer`.

    ``agent`` is the URL in ``Signature-Agent``. A signature holds for ``lifetime_s`` seconds. It covers the authority,
    or what the site has asked for in ``Accept-Signature`` before (RFC 9421, 5).
    """

    def __init__(self, keys: KeyFile, agent: str, form: SignatureForm, lifetime_s: float) -> None:
        self._keys = keys
        self._agent = agent
        self._lifetime_s = max(1, round(lifetime_s))
        self._is_dictionary = form is SignatureForm.DICTIONARY
        agents: Identifier = ("signature-agent", {"key": _LABEL} if self._is_dictionary else {})
        self._usual: tuple[Demand, ...] = (Demand(_LABEL, (("@authority", {}), agents)),)
        self._demands: OrderedDict[str, _Demands] = OrderedDict()  # by site

    def headers(self, method: str, url: str, authority: str, fields: Mapping[str, str], now: float) -> dict[str, str]:
        """The three headers of a request that is sent at ``now`` (section "Sending a Request").

        ``authority`` is as RFC 9421, 2.2.3 derives it: in lower case, without the default port. ``fields`` are other
        fields of the request. The nonce makes each signature a new one, so a verifier can refuse a repeated one
        (RFC 9421, 7.2.2).
        """
        key, demands = signing(self._keys.at(now), now), self._demands.get(split(url).site)
        wanted, nonces = self._usual, dict[str, str]()
        if demands is not None and _fits(demands.wanted, key):
            wanted, nonces, demands.nonces = demands.wanted, demands.nonces, {}
            demands.has_nonce = bool(nonces)
        agent = ser(self._agent)
        agents = {each.label: agent for each in wanted}
        field = ", ".join(f"{label}={agent}" for label in agents) if self._is_dictionary else agent
        message = Message(method, url, authority, {name.lower(): value for name, value in fields.items()})
        signed = [
            signed_fields(
                each.label,
                [self._covered_agent(item, agent, field) or covered(item, message) for item in each.components],
                self._parameters(each, key, nonces.get(each.label, ""), int(now)),
                key.private.sign,
            )
            for each in wanted
        ]
        return {
            "Signature-Agent": field,
            "Signature-Input": ", ".join(each.signature_input for each in signed),
            "Signature": ", ".join(each.signature for each in signed),
        }

    def heed(self, url: str, accept_signature: str, fields: Mapping[str, str], now: float) -> bool:
        """Sign the next requests to the site of ``url`` as its answer asks for, in the value of ``Accept-Signature``.

        Returns whether the request that was answered was signed otherwise. ``fields`` are those of each request.
        """
        asked = demanded(accept_signature, self._is_dictionary, {name.lower(): "" for name in fields})
        if not asked or not _fits(asked, signing(self._keys.at(now), now)):
            return False
        site = split(url).site
        before = self._demands.pop(site, None)
        nonces = {each.label: each.nonce for each in asked if each.nonce}
        wanted = tuple(each._replace(nonce="") for each in asked)
        has_nonce = before is not None and before.has_nonce
        self._demands[site] = _Demands(wanted, nonces, has_nonce)
        if len(self._demands) > _SITES_KEPT:
            self._demands.popitem(last=False)
        is_met = (self._usual if before is None else before.wanted) == wanted
        return not is_met or (bool(nonces) and not has_nonce)

    def _covered_agent(self, item: Identifier, agent: str, field: str) -> Component | None:
        """The component ``signature-agent``: the member that it names, or the whole field."""
        name, parameters = item
        return Component(item, agent if parameters else field) if name == "signature-agent" else None

    def _parameters(self, demand: Demand, key: SigningKey, nonce: str, created: int) -> dict[str, int | str | bool]:
        algorithm = {"alg": ALGORITHM} if demand.names_algorithm else {}
        return {
            "created": created,
            "expires": created + self._lifetime_s,
            "keyid": key.keyid,
            **algorithm,
            "nonce": nonce or b64encode(urandom(_NONCE_BYTES)).decode(),
            "tag": TAG,
        }


def _fits(demands: Sequence[Demand], key: SigningKey) -> bool:
    """Whether no demand names another key."""
    return all(each.keyid in ("", key.keyid) for each in demands)
