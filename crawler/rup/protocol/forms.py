"""Requests of a robot as fields of a form, in both directions (Internet-Draft of 1998, 3.1.2 and 3.3).

Each request is a struct whose field names are those of the form; msgspec converts it. :func:`write_form` turns a
request into (name, value) pairs, and :func:`read_form` turns such pairs into a request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from email.message import Message
from typing import Self

from msgspec import Struct, ValidationError, convert
from msgspec.structs import asdict

from crawler.rup.protocol.multipart import content_of, short_header, split_head, split_parts
from crawler.rup.protocol.units import Span, read_span
from crawler.terminal_text import shown

#: Limits on a form: characters of a value, number of fields.
MAX_VALUE_CHARS = 20_000
MAX_FIELDS = 50

#: The field that a mail program sends if its user unsubscribes from a list (RFC 8058, 3.2).
ONE_CLICK = ("List-Unsubscribe", "One-Click")

_MAX_TYPE_CHARS = 300
_ADDRESS = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
    r"@[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*"
)


class Preferences(
    Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    rename={"latency": "Latency", "exclude": "Exclude", "include_only": "IncludeOnly"},
):
    """The wishes of a robot: the contents of its reports, and their frequency.

    ``None``: the request does not say; an empty tuple: no patterns. One of the lists may have patterns, not both.
    """

    latency: Span | None = None
    exclude: tuple[str, ...] | None = None
    include_only: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.exclude and self.include_only:
            raise ValueError("a request may have Exclude or IncludeOnly, not both")


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


class Register(Preferences, frozen=True, rename={"email": "RobotEmail"}):
    """A request for reports to ``email``."""

    email: str


_SIGNED = {"key": "RegistrationKey", "email": "RegisteredRobotEmail"}


class Unregister(Struct, frozen=True, rename=_SIGNED):
    """A request for no more reports."""

    key: str
    email: str


class ModifyPreferences(Preferences, frozen=True, rename=_SIGNED | {"new_email": "RobotEmail"}):
    """A change of preferences.

    ``new_email`` is the address for future reports; ``None`` leaves the address as it is.
    """

    key: str
    email: str
    new_email: str | None = None


class GetSequenceNumber(Struct, frozen=True, rename=_SIGNED):
    """A request for the number of the last report to this robot."""

    key: str
    email: str


class GetIndex(Struct, frozen=True, rename={"span": "Span"}):
    """A request for all changes of the last ``span``; it needs no registration."""

    span: Span


class Leave(Struct, frozen=True, omit_defaults=True, rename={"token": "Token", "button": ONE_CLICK[0]}):
    """A request for no more mail, by the link in a mail.

    Not in the draft. If somebody pressed the button, ``button`` says so (RFC 8058). A scanner of mail follows the link
    only.
    """

    token: str
    button: str = ""

    @property
    def is_sure(self) -> bool:
        return self.button == ONE_CLICK[1]


RupRequest = Register | Unregister | ModifyPreferences | GetSequenceNumber | GetIndex | Leave
_KINDS = {kind.__name__.lower(): kind for kind in RupRequest.__args__}


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
    """The fields, the action first. Preferences that the request does not name are left out."""
    values = zip(asked.__struct_encode_fields__, asdict(asked).values(), strict=True)
    texts = (
        (name, " ".join(value) if isinstance(value, tuple) else str(value))
        for name, value in values
        if value != "" and value is not None
    )
    return (("Action", type(asked).__name__), *texts)


def read_multipart(content_type: str, body: bytes) -> list[tuple[str, str]]:
    """The fields of a ``multipart/form-data`` (RFC 7578), as mail programs unsubscribe with (RFC 8058, 3.1).

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
            fields.append((name, decoded.decode("utf-8", "replace")))
    return fields


def read_form(fields: Iterable[tuple[str, str]]) -> RupRequest | BadForm:
    """Read a request from fields; letter case of names and actions does not matter.

    Ignores unknown fields. Never raises.
    """
    try:
        form = _form(fields)
        action = form.get("action", "").strip()
        kind = _KINDS.get(action.lower())
        if kind is None:
            return BadForm(501, f"unknown Action: {shown(action, 40)}") if action else BadForm(400, "Action is missing")
        names = (name for name in kind.__struct_encode_fields__ if name.lower() in form)
        values = {name: _value(name, form[name.lower()].strip()) for name in names}
        given = {name: value for name, value in values.items() if value != ""}
        asked: RupRequest = convert(given, kind, from_attributes=True)
        return asked
    except (ValueError, ValidationError) as error:
        return BadForm(400, str(error))


def _form(fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The fields by name in lower case. Patterns may come in several fields, every other field must be unique."""
    form: dict[str, str] = {}
    for number, (written, text) in enumerate(fields, 1):
        if number > MAX_FIELDS:
            raise ValueError(f"more than {MAX_FIELDS} fields")
        name, value = written.strip().lower(), text
        if name in form:
            if name not in ("exclude", "includeonly"):
                raise ValueError(f"the field {shown(name, 40)} occurs twice")
            value = f"{form[name]} {text}"
        if len(value) > MAX_VALUE_CHARS:
            raise ValueError(f"the field {shown(name, 40)} is longer than {MAX_VALUE_CHARS} characters")
        form[name] = value
    return form


def _value(name: str, text: str) -> object:
    """The value of a field. An empty text is no value, except for patterns. Raises :class:`ValueError`."""
    match name:
        case "Exclude" | "IncludeOnly":
            return tuple(text.split())
        case "Latency" | "Span" if text:
            if (span := read_span(text)) is None:
                raise ValueError(f"{name} must be a number, a hyphen and a unit, such as 7-day, not {shown(text, 40)}")
            return span
        case "RobotEmail" | "RegisteredRobotEmail" if text and not is_address(text):
            raise ValueError(f"{name} is not an e-mail address: {shown(text, 80)}")
        case _:
            return text
