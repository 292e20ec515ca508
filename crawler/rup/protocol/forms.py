"""Requests of a robot as fields of a form, in both directions (Internet-Draft of 1998, 3.1.2 and 3.3).

:data:`RupRequest` is the closed sum of all requests. :func:`write_form` turns a request into (name, value) pairs, and
:func:`read_form` turns such pairs into a request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from email.message import Message
from typing import Self

from crawler.rup.protocol.multipart import content_of, short_header, split_head, split_parts
from crawler.rup.protocol.units import Span, read_span
from crawler.terminal_text import shown

#: Limits on a form: characters of a value, number of fields, characters of a key or token.
MAX_VALUE_CHARS = 20_000
MAX_FIELDS = 50
MAX_KEY_CHARS = 200

#: The field that a mail program sends if its user unsubscribes from a list (RFC 8058, 3.2).
ONE_CLICK = ("List-Unsubscribe", "One-Click")

_MAX_TYPE_CHARS = 300
_ADDRESS = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
    r"@[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*"
)


@dataclass(frozen=True, slots=True)
class Preferences:
    """The wishes of a robot: the contents of its reports, and their frequency.

    ``None``: the request does not say; an empty tuple: no patterns.
    """

    latency: Span | None = None
    exclude: tuple[str, ...] | None = None
    include_only: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Agreement:
    """A registration as both sides know it. Times in seconds since the epoch."""

    email: str
    key: str
    latency: Span
    registered_at: float
    exclude: tuple[str, ...] = ()
    include_only: tuple[str, ...] = ()
    sequence_number: int = 0  # of the last report

    def with_preferences(self, asked: Preferences) -> Self:
        """Preferences that are not named stay. A new list replaces the other list."""
        exclude = self.exclude if asked.exclude is None else asked.exclude
        include_only = self.include_only if asked.include_only is None else asked.include_only
        return replace(
            self,
            latency=asked.latency or self.latency,
            exclude=() if asked.include_only else exclude,
            include_only=() if asked.exclude else include_only,
        )


@dataclass(frozen=True, slots=True)
class Register:
    """A request for reports to ``email``."""

    email: str
    preferences: Preferences = Preferences()


@dataclass(frozen=True, slots=True)
class Unregister:
    """A request for no more reports."""

    key: str
    email: str


@dataclass(frozen=True, slots=True)
class ModifyPreferences:
    """A change of preferences.

    ``new_email`` is the address for future reports; ``None`` leaves the address as it is.
    """

    key: str
    email: str
    new_email: str | None = None
    preferences: Preferences = Preferences()


@dataclass(frozen=True, slots=True)
class GetSequenceNumber:
    """A request for the number of the last report to this robot."""

    key: str
    email: str


@dataclass(frozen=True, slots=True)
class GetIndex:
    """A request for all changes of the last ``span``; it needs no registration."""

    span: Span


@dataclass(frozen=True, slots=True)
class Leave:
    """A request for no more mail, by the link in a mail.

    Not in the draft. ``sure``: somebody pressed the button (RFC 8058). A scanner of mail follows the link only.
    """

    token: str
    sure: bool = False


RupRequest = Register | Unregister | ModifyPreferences | GetSequenceNumber | GetIndex | Leave


@dataclass(frozen=True, slots=True)
class BadForm:
    """Why a form has no answer, with the status of the draft: 400 for a wrong form, 501 for an unknown action."""

    status: int
    why: str


def is_address(text: str) -> bool:
    """Whether ``text`` is a mail address: ``local@host`` in ASCII, without quotes or comments (RFC 5321, 4.1.2)."""
    if len(text) > 254 or not _ADDRESS.fullmatch(text):
        return False
    local, _, domain = text.rpartition("@")
    return len(local) <= 64 and all(len(label) <= 63 for label in domain.split("."))


def write_form(asked: RupRequest) -> tuple[tuple[str, str], ...]:
    """The fields in the order of the draft."""
    match asked:
        case Register(email, preferences):
            return (("Action", "Register"), ("RobotEmail", email), *_preference_fields(preferences))
        case ModifyPreferences(key, email, new_email, preferences):
            moved = (("RobotEmail", new_email),) if new_email is not None else ()
            return (*_signed("ModifyPreferences", key, email), *moved, *_preference_fields(preferences))
        case GetIndex(span):
            return (("Action", "GetIndex"), ("Span", str(span)))
        case Leave(token, sure):
            return (("Action", "Leave"), ("Token", token), *((ONE_CLICK,) if sure else ()))
        case Unregister(key, email) | GetSequenceNumber(key, email):
            return _signed(type(asked).__name__, key, email)


def _signed(action: str, key: str, email: str) -> tuple[tuple[str, str], ...]:
    return (("Action", action), ("RegistrationKey", key), ("RegisteredRobotEmail", email))


def _preference_fields(preferences: Preferences) -> tuple[tuple[str, str], ...]:
    fields = [
        ("Latency", None if preferences.latency is None else str(preferences.latency)),
        ("Exclude", None if preferences.exclude is None else " ".join(preferences.exclude)),
        ("IncludeOnly", None if preferences.include_only is None else " ".join(preferences.include_only)),
    ]
    return tuple((name, value) for name, value in fields if value is not None)


def read_multipart(content_type: str, body: bytes) -> list[tuple[str, str]]:
    """The fields of a ``multipart/form-data`` (RFC 7578).

    Skips parts that are not fields, such as files, and parts in parts. Reads one field more than :data:`MAX_FIELDS`.
    Takes linear time. Never raises.
    """
    head = Message()
    head["Content-Type"] = " ".join(content_type.split())[:_MAX_TYPE_CHARS]
    boundary = head.get_boundary()
    if not boundary:
        return []
    fields = []
    for part in split_parts(body, boundary, MAX_FIELDS + 1):
        header, content = split_head(part)
        short = short_header(header, "Content-Disposition", "Content-Transfer-Encoding")
        name = short.get_param("name", header="content-disposition")
        decoded = None if short.get_filename() is not None else content_of(short, content)
        if isinstance(name, str) and decoded is not None:
            fields.append((name[:MAX_KEY_CHARS], decoded.decode("utf-8", "replace")))
    return fields


class _Bad(Exception):
    pass


def read_form(fields: Iterable[tuple[str, str]]) -> RupRequest | BadForm:
    """Read a request from fields; letter case of names and actions does not matter.

    Ignores unknown fields. Never raises.
    """
    try:
        form = _form(fields)
        action = form.get("action", "").strip()
        match action.lower():
            case "register":
                return Register(_address(form, "RobotEmail"), _preferences(form))
            case "unregister":
                return Unregister(_key(form), _address(form, "RegisteredRobotEmail"))
            case "modifypreferences":
                moved = _address(form, "RobotEmail") if "robotemail" in form else None
                return ModifyPreferences(_key(form), _address(form, "RegisteredRobotEmail"), moved, _preferences(form))
            case "getsequencenumber":
                return GetSequenceNumber(_key(form), _address(form, "RegisteredRobotEmail"))
            case "getindex":
                return GetIndex(_span(form, "Span"))
            case "leave":
                pressed = form.get(ONE_CLICK[0].lower(), "").strip().lower() == ONE_CLICK[1].lower()
                return Leave(_required(form, "Token")[:MAX_KEY_CHARS], pressed)
    except _Bad as bad:
        return BadForm(400, str(bad))
    if not action:
        return BadForm(400, "Action is missing")
    return BadForm(501, f"unknown Action: {shown(action, 40)}")


def _form(fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The fields by name in lower case. Patterns may come in several fields, every other field must be unique."""
    form: dict[str, str] = {}
    for number, (written, text) in enumerate(fields, 1):
        if number > MAX_FIELDS:
            raise _Bad(f"more than {MAX_FIELDS} fields")
        name, value = written.strip().lower(), text
        if name in form:
            if name not in ("exclude", "includeonly"):
                raise _Bad(f"the field {shown(name, 40)} occurs twice")
            value = f"{form[name]} {text}"
        if len(value) > MAX_VALUE_CHARS:
            raise _Bad(f"the field {shown(name, 40)} is longer than {MAX_VALUE_CHARS} characters")
        form[name] = value
    return form


def _required(form: dict[str, str], name: str) -> str:
    value = form.get(name.lower(), "").strip()
    if not value:
        raise _Bad(f"{name} is missing")
    return value


def _address(form: dict[str, str], name: str) -> str:
    value = _required(form, name)
    if not is_address(value):
        raise _Bad(f"{name} is not an e-mail address: {shown(value, 80)}")
    return value


def _key(form: dict[str, str]) -> str:
    return _required(form, "RegistrationKey")[:MAX_KEY_CHARS]


def _span(form: dict[str, str], name: str) -> Span:
    value = _required(form, name)
    span = read_span(value)
    if span is None:
        raise _Bad(f"{name} must be a number, a hyphen and a unit, such as 7-day, not {shown(value, 40)}")
    return span


def _preferences(form: dict[str, str]) -> Preferences:
    """The preferences in a form. Both lists may be present, but one of them must be empty."""
    exclude, include_only = (tuple(form[name].split()) if name in form else None for name in ("exclude", "includeonly"))
    if exclude and include_only:
        raise _Bad("a request may have Exclude or IncludeOnly, not both")
    return Preferences(_span(form, "Latency") if form.get("latency", "").strip() else None, exclude, include_only)
