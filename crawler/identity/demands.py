"""Signatures that an owner asks for in ``Accept-Signature`` (RFC 9421, 5), as far as Web Bot Auth gives them (pure).

A demand is met by a signature with its label, its components and its parameters. The signature must also satisfy the
profile of Web Bot Auth: it covers ``@authority`` or ``@target-uri`` and the agent, and its tag is ``web-bot-auth``. So
no site can have something signed that another site would accept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, cast
from urllib.parse import urlsplit

from http_sf import StructuredFieldError, parse
from http_sf.types import BareItemType

from crawler.identity.signatures import Component

#: The name of a component with its parameters, as :attr:`Component.identifier` has it.
Identifier = tuple[BareItemType, dict[str, BareItemType]]

TAG = "web-bot-auth"
ALGORITHM = "ed25519"
_MAX_CHARS = 2_000
_MAX_COMPONENTS = 20
#: The values that a parameter of a demand may have. ``True`` asks for the parameter with a value of the signer's.
_PARAMETERS: Mapping[str, Callable[[object], bool]] = {
    "created": lambda value: value is True,
    "expires": lambda value: value is True,
    "nonce": lambda value: value is True or isinstance(value, str),
    "keyid": lambda value: value is True or isinstance(value, str),
    "alg": lambda value: value is True or value == ALGORITHM,
    "tag": lambda value: value is True or value == TAG,
}


class Message(NamedTuple):
    """What a signature may cover of a request. ``fields`` have names in lower case."""

    method: str
    url: str
    authority: str
    fields: Mapping[str, str]


class Demand(NamedTuple):
    """A signature that was asked for. ``nonce`` and ``keyid`` are empty if the signer chooses them."""

    label: str
    components: tuple[Identifier, ...]
    keyid: str = ""
    names_algorithm: bool = False
    nonce: str = ""


def demanded(field: str, is_dictionary: bool, fields: Mapping[str, str]) -> tuple[Demand, ...]:
    """The signatures that the value of ``Accept-Signature`` asks for; none if one of them cannot be given (5.2).

    ``is_dictionary`` is the form of ``Signature-Agent``, ``fields`` are those that the crawler sends.
    """
    if len(field) > _MAX_CHARS:
        return ()
    try:
        members = parse(field.encode("latin-1"), tltype="dictionary")
    except (StructuredFieldError, ValueError):
        return ()
    assert isinstance(members, dict), "a dictionary was asked for"
    demands = []
    for label, member in members.items():
        if not (isinstance(member, tuple) and isinstance(member[0], list)):
            return ()
        items, parameters = member
        components = cast(
            tuple[Identifier, ...], tuple(item if isinstance(item, tuple) else (item, {}) for item in items)
        )
        names = {name for name, _ in components}
        can_all = all(_can(name, extra, label, is_dictionary, fields) for name, extra in components)
        if not can_all or len(components) > _MAX_COMPONENTS:
            return ()
        if "signature-agent" not in names or names.isdisjoint(("@authority", "@target-uri")):
            return ()
        if not all(name in _PARAMETERS and _PARAMETERS[name](value) for name, value in parameters.items()):
            return ()
        keyid, nonce = (value if isinstance(value := parameters.get(name), str) else "" for name in ("keyid", "nonce"))
        demands.append(Demand(label, components, keyid, "alg" in parameters, nonce))
    return tuple(demands)


def covered(item: Identifier, message: Message) -> Component:
    """A component of a demand with its value in a request (RFC 9421, 2.1 and 2.2)."""
    name = str(item[0])
    derive = _DERIVED.get(name)
    return Component(item, message.fields[name] if derive is None else derive(message))


def _can(
    name: object, parameters: Mapping[str, object], label: str, is_dictionary: bool, fields: Mapping[str, str]
) -> bool:
    if name == "signature-agent":
        return not parameters or (is_dictionary and parameters == {"key": label})
    return not parameters and (name in _DERIVED or name in fields)


_DERIVED: Mapping[str, Callable[[Message], str]] = {
    "@method": lambda message: message.method,
    "@target-uri": lambda message: message.url,
    "@authority": lambda message: message.authority,
    "@scheme": lambda message: urlsplit(message.url).scheme,
    "@request-target": lambda message: message.url[message.url.index("/", 8) :],
    "@path": lambda message: urlsplit(message.url).path,
    "@query": lambda message: f"?{urlsplit(message.url).query}",
}
