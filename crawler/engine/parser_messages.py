"""Questions to a parser process as messages, whatever they are about."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from crawler.engine.page_messages import Question
from crawler.engine.robots_messages import RobotsQuestion
from crawler.engine.sitemap_messages import SitemapQuestion
from crawler.engine.text_messages import TextQuestion

AnyQuestion: TypeAlias = Question | RobotsQuestion | SitemapQuestion | TextQuestion

# The first byte of a message with a question tells what the question is about.
_KINDS: dict[type[AnyQuestion], bytes] = {
    Question: b"p",
    RobotsQuestion: b"r",
    SitemapQuestion: b"s",
    TextQuestion: b"t",
}
_ENCODER = msgspec.msgpack.Encoder()
_DECODERS: dict[bytes, msgspec.msgpack.Decoder[AnyQuestion]] = {
    about: msgspec.msgpack.Decoder(kind) for kind, about in _KINDS.items()
}


def pack_question(question: AnyQuestion, max_cpu_s: float) -> tuple[bytes, bytes]:
    """A question with another limit of processor time, as two messages. The second is its body, which is not copied."""
    encoded = _ENCODER.encode(question._replace(max_cpu_s=max_cpu_s, body=b""))
    return _KINDS[type(question)] + encoded, question.body


def unpack_question(message: bytes, body: bytes) -> AnyQuestion:
    """The question in two messages."""
    return _DECODERS[message[:1]].decode(memoryview(message)[1:])._replace(body=body)
