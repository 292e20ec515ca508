"""``/.well-known/tdmrep.json``: a site's statements about text and data mining, by path. Pure.

Source: TDM Reservation Protocol (W3C Community Group, 2024), "TDM File on the Origin Server" and "Processing priority".
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from crawler.model import Failed, Fetched, FetchResult, Preference, Purpose, SiteFile
from crawler.preferences.purposes import bounded
from crawler.preferences.schemes import Scheme, tdm_policy, tdm_reservation
from crawler.robots.paths import Pattern, rfc_form, rfc_pattern
from crawler.terminal_text import shown

TDMREP_PATH = "/.well-known/tdmrep.json"
SOURCE = "tdmrep.json"
MAX_BYTES = 64 << 10
#: A file with more rules is malformed. It bounds the work for each page.
MAX_RULES = 1_000


@dataclass(frozen=True, slots=True)
class TdmRules:
    """The rules of one file, in its order."""

    rules: tuple[tuple[Pattern, tuple[Preference, ...]], ...] = ()

    def of(self, path: str) -> tuple[Preference, ...]:
        """The statements for a path with its query: those of the first rule whose location matches."""
        if not self.rules:
            return ()
        form = rfc_form(path)
        return next((said for pattern, said in self.rules if pattern.matches(form)), ())


NO_RULES = TdmRules()


def tdm_rules(body: bytes, site: str) -> TdmRules:
    """Read a file of ``site``. Raises :class:`ValueError` for anything but an array of objects.

    A rule without a location or a valid ``tdm-reservation`` says nothing: both are mandatory.
    """
    rules = []
    listed = json.loads(body.decode("utf-8-sig"))
    if not isinstance(listed, list) or len(listed) > MAX_RULES:
        raise ValueError(f"not an array of at most {MAX_RULES:,} rules")
    for rule in listed:
        if not isinstance(rule, dict):
            raise ValueError("a rule that is not an object")
        location, reserved, policy = rule.get("location"), rule.get("tdm-reservation"), rule.get("tdm-policy")
        if not isinstance(location, str) or not location.startswith("/") or isinstance(reserved, bool):
            continue
        said = tdm_reservation(str(reserved), SOURCE, f"tdm-reservation: {reserved} for {location}")
        if said and isinstance(policy, str):
            said += tdm_policy(policy, SOURCE, f"tdm-policy: {policy} for {location}", f"{site}/")
        if said:
            rules.append((rfc_pattern(location), tuple(said)))
    return TdmRules(tuple(rules))


def filed_for(text: str, site: str, path: str) -> tuple[Preference, ...]:
    """The statements of a file of ``site`` for a path with its query, for checks without network.

    Raises :class:`ValueError` for a malformed file, which a crawl ignores.
    """
    try:
        return tdm_rules(text.encode("utf-8", "surrogatepass"), site).of(path)
    except (ValueError, RecursionError) as error:
        raise ValueError(f'"tdmrep" is malformed, so a crawl ignores it: {shown(str(error))}') from None


def with_filed(own: Iterable[Preference], text: str, site: str, path: str) -> tuple[Preference, ...]:
    """The preferences of a page of ``site`` with those of the file; raises as :func:`filed_for`."""
    return supplemented(own, filed_for(text, site, path))


def interpret_tdmrep(answer: FetchResult, site: str) -> tuple[SiteFile, TdmRules]:
    """The file that an answer brought, and its rules. A redirect, a failure and a malformed file state nothing."""
    at = answer.finished_at
    if isinstance(answer, Fetched):
        file = SiteFile(TDMREP_PATH, Purpose.TDMREP, at, str(answer.status), answer.body)
        try:
            return file, tdm_rules(answer.body, site)
        except (ValueError, RecursionError) as error:
            return file._replace(note=f"malformed: {shown(str(error))}"), NO_RULES
    note = str(answer.error) or answer.kind.value if isinstance(answer, Failed) else "a redirect is not followed"
    return SiteFile(TDMREP_PATH, Purpose.TDMREP, at, str(answer.status or "no answer"), note=note), NO_RULES


def supplemented(own: Iterable[Preference], filed: Iterable[Preference]) -> tuple[Preference, ...]:
    """The preferences of a page, with those of the file about which neither its header nor its tags say anything."""
    own = tuple(own)
    stated = {one.category for one in own if one.scheme == Scheme.TDMREP}
    return bounded((*own, *(one for one in filed if one.category not in stated)))
