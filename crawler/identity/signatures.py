"""HTTP Message Signatures (RFC 9421) as pure text: signature bases, and the two fields that carry a signature.

The caller chooses the components and their values, and signs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from http_sf import ser
from http_sf.types import InnerListType, ItemType

Parameters = Mapping[str, int | str | bool]


class Component(NamedTuple):
    """A covered component: its identifier with parameters (RFC 9421, 2), and its value in this message."""

    identifier: ItemType
    value: str


class SignedFields(NamedTuple):
    """One member of each of the fields ``Signature-Input`` and ``Signature`` (RFC 9421, 4.1 and 4.2)."""

    signature_input: str
    signature: str


def component(name: str, value: str, **parameters: int | str | bool) -> Component:
    """The component ``name``: a field name in lower case, or a derived component such as ``@authority``."""
    return Component((name, dict(parameters)), value)


def content_digest(body: bytes) -> str:
    """The value of ``Content-Digest`` for ``body`` (RFC 9530, 2)."""
    return ser({"sha-256": sha256(body).digest()})


def signature_base(components: Sequence[Component], parameters: Parameters) -> str:
    """The text that is signed (RFC 9421, 2.5); ``parameters`` are in the order of ``Signature-Input``."""
    lines = [f"{ser(each.identifier)}: {each.value}" for each in components]
    return "\n".join([*lines, f'"@signature-params": {ser([_covered(components, parameters)])}'])


def signed_fields(
    label: str, components: Sequence[Component], parameters: Parameters, sign: Callable[[bytes], bytes]
) -> SignedFields:
    """Sign ``components`` by ``sign``, and write the members ``label`` of both fields (RFC 9421, 3.1)."""
    signature = sign(signature_base(components, parameters).encode("ascii"))
    return SignedFields(ser({label: _covered(components, parameters)}), ser({label: signature}))


def _covered(components: Sequence[Component], parameters: Parameters) -> InnerListType:
    """The Inner List of the components with the signature's parameters (RFC 9421, 2.3)."""
    return [each.identifier for each in components], dict(parameters)
