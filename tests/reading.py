"""Reads pages and texts in the process of the test: a child process would not keep virtual time, and takes longer."""

from __future__ import annotations

import asyncio

from crawler.engine.messages import Question, T, pack_answer
from crawler.engine.parser_pool import ReadingOptions, _Document, _Parser, question_about
from crawler.engine.parser_process import answer_to, unpack_question
from crawler.engine.text_messages import ContentQuestion, TextQuestion
from crawler.errors import fault
from crawler.model import Fetched, PageFacts, Reading
from crawler.page.texts import Content, MainText


def answered(question: Question[T]) -> T:
    """The answer to a question, which passes through the messages of the parser process."""
    answer = question.unpack(answer_to(unpack_question(*question.packed(question.max_cpu_s))))
    assert not isinstance(answer, str)
    return answer


class ReaderInProcess:
    """A page reader as the engine wants it."""

    def __init__(self, options: ReadingOptions | None = None) -> None:
        self._options = options or ReadingOptions("", Reading.STRICT)

    def has_room(self, domain: str) -> bool:
        return True

    async def read(self, document: Fetched, *, is_alone: bool = False, shingles: bool = False) -> PageFacts:
        return answered(question_about(document, self._options, shingles=shingles))

    async def ask(self, question: Question[T], *, is_alone: bool = False) -> T:
        return answered(question)


class ParserInProcess(_Parser):
    """Takes the place of a child process of a pool, and reads in the process of the test: starting a child takes 30 ms.

    Nothing ends it, confines it or limits its time.
    """

    async def start(self) -> None:
        self.ready.set_result("nothing")

    def is_cut_off(self) -> bool:
        return False  # there is no pipe

    def send(self, document: _Document) -> None:
        self.documents.append(document)
        self._octets += document.octets
        document.sent_at = asyncio.get_running_loop().time()
        asyncio.get_running_loop().call_soon(self._answer, document)

    def kill(self) -> None:
        self.is_over = True
        if not self.ended.done():
            self.ended.set_result(None)

    def _answer(self, document: _Document) -> None:
        if self.ended.done():
            return
        question = unpack_question(*document.question.packed(document.max_cpu_s))
        try:
            message = answer_to(question)
        except Exception as error:
            message = pack_answer(fault(error))
        self._note_answer(message)
        self._on_answers()


class TextsInProcess:
    """A reader of texts. ``sites`` has the site of each document that was read."""

    def __init__(self) -> None:
        self.sites: list[str] = []

    async def main_text(self, site: str, body: bytes, charset: str | None, content_type: str) -> MainText:
        self.sites.append(site)
        return answered(TextQuestion(1.0, site, body, charset, content_type))

    async def content(self, site: str, body: bytes, charset: str | None, content_type: str) -> Content | None:
        return answered(ContentQuestion(1.0, site, body, charset, content_type))
