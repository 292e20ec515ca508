"""HTTP Message Signatures (RFC 9421) as pure text: signature bases, and the two fields that carry a signature.

The caller chooses the components and their values, and signs.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

Parameters = Mapping[str, int | str | bool]


class Component(NamedTuple):
    """A covered component: its identifier with parameters (RFC 9421, 2), and its value in this message."""

    identifier: str
    value: str


class SignedFields(NamedTuple):
    """One member of each of the fields ``Signature-Input`` and ``Signature`` (RFC 9421, 4.1 and 4.2)."""

    signature_input: str
    signature: str


def component(name: str, value: str, **parameters: int | str | bool) -> Component:
    """The component ``name``: a field name in lower case, or a derived component such as ``@authority``."""
    return Component(_string(name) + _parameters(parameters), value)


def member(text: str) -> str:
    """A String Item (RFC 9651, 4.1.6). ``text`` is printable ASCII."""
    return _string(text)


def content_digest(body: bytes) -> str:
    """The value of ``Content-Digest`` for ``body`` (RFC 9530, 2)."""
    return f"sha-256={_octets(sha256(body).digest())}"


def signature_base(components: Sequence[Component], parameters: Parameters) -> str:
    """The text that is signed (RFC 9421, 2.5); ``parameters`` are in the order of ``Signature-Input``."""
    lines = [f"{each.identifier}: {each.value}" for each in components]
    return "\n".join([*lines, f'"@signature-params": {_signature_params(components, parameters)}'])


def signed_fields(
    label: str, components: Sequence[Component], parameters: Parameters, sign: Callable[[bytes], bytes]
) -> SignedFields:
    """Sign ``components`` by ``sign``, and write the members ``label`` of both fields (RFC 9421, 3.1)."""
    signature = sign(signature_base(components, parameters).encode("ascii"))
    return SignedFields(f"{label}={_signature_params(components, parameters)}", f"{label}={_octets(signature)}")


def _signature_params(components: Sequence[Component], parameters: Parameters) -> str:
    """The Inner List of the components with the signature's parameters (RFC 9421, 2.3)."""
    return f"({' '.join(each.identifier for each in components)}){_parameters(parameters)}"


def _parameters(parameters: Parameters) -> str:
    """Parameters (RFC 9651, 4.1.1.2). A parameter that is true has no value."""
    return "".join(f";{name}" + ("" if value is True else f"={_bare(value)}") for name, value in parameters.items())


def _bare(value: int | str) -> str:
    return str(value) if isinstance(value, int) else _string(value)


def _string(text: str) -> str:
    if not (text.isascii() and text.isprintable()):
        raise ValueError(f"{text!r} is no String of Structured Fields (RFC 9651, 4.1.6)")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _octets(value: bytes) -> str:
    """A Byte Sequence (RFC 9651, 4.1.8)."""
    return f":{b64encode(value).decode()}:"
