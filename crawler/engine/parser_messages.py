"""Questions to a parser process as messages, whatever they are about."""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from crawler.engine.page_messages import Question
from crawler.engine.robots_messages import RobotsQuestion
from crawler.engine.sitemap_messages import SitemapQuestion
from crawler.engine.text_messages import ContentQuestion, TextQuestion

AnyQuestion: TypeAlias = Question | RobotsQuestion | SitemapQuestion | TextQuestion | ContentQuestion

_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[AnyQuestion] = msgspec.msgpack.Decoder(AnyQuestion)


def pack_question(question: AnyQuestion, max_cpu_s: float) -> tuple[bytes, bytes]:
    """A question with another limit of processor time, as two messages. The second is its body, which is not copied."""
    return _ENCODER.encode(replace(question, max_cpu_s=max_cpu_s, body=b"")), question.body


def unpack_question(message: bytes, body: bytes) -> AnyQuestion:
    """The question in two messages."""
    return replace(_DECODER.decode(message), body=body)
