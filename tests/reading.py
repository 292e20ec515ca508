"""Reads pages in the process of the test, for crawls on virtual time: a child process would not keep its clock."""

from __future__ import annotations

from crawler.engine.page_messages import pack_answer, unpack_answer, unpack_question
from crawler.engine.parser_pool import ReadingOptions, question_about
from crawler.engine.parser_process import read_document
from crawler.model import Fetched, PageFacts


class ReaderInProcess:
    """A page reader as the engine wants it. Questions and answers pass through the messages of the parser process."""

    def __init__(self, options: ReadingOptions) -> None:
        self._options = options

    def has_room(self, domain: str) -> bool:
        return True

    async def room(self, domain: str) -> None:
        pass

    async def ready(self) -> None:
        pass  # no process must be started

    async def read(self, document: Fetched) -> PageFacts:
        question = unpack_question(question_about(document, self._options).packed())
        facts = unpack_answer(pack_answer(read_document(question)))
        assert isinstance(facts, PageFacts)
        return facts
