"""The one rule that combines the preferences of a page (draft-ietf-aipref-vocab, 5.1)."""

from __future__ import annotations

from itertools import product

import pytest

from crawler.model import Preference
from crawler.preferences.purposes import (
    COVERED,
    UsePurpose,
    categories_for,
    first_refusal,
    refusals_of,
    sentence_of,
)
from crawler.preferences.schemes import Scheme, content_signal, content_usage, robots_terms, tdm_reservation

TRAIN, SEARCH = UsePurpose.TRAIN_AI, UsePurpose.SEARCH


def one(category: str, value: str, source: str = "header", line: int | None = None) -> Preference:
    return Preference("content-usage", category, value, source, line, f"Content-Usage: {category}={value}")


@pytest.mark.parametrize(
    ("values", "refuses"),
    [("", False), ("y", False), ("n", True), ("yn", True), ("ny", True), ("yyn", True), ("yy", False)],
)
def test_aipref_vocab_5_1_combining_preferences(values: str, refuses: bool) -> None:
    preferences = [one("train-ai", value) for value in values]
    assert (first_refusal(preferences, [TRAIN]) is not None) is refuses
    assert first_refusal(preferences, [SEARCH]) is None


def test_any_declared_purpose_that_is_disallowed_refuses() -> None:
    preferences = [one("search", "y"), one("train-ai", "n")]
    assert first_refusal(preferences, []) is None
    assert first_refusal(preferences, [SEARCH]) is None
    assert first_refusal(preferences, [SEARCH, TRAIN]) == preferences[1]


def test_a_reservation_of_mining_is_about_analysis_and_not_about_search_or_archives() -> None:
    refused = {purpose for purpose in UsePurpose if first_refusal([one("tdm", "n")], [purpose])}
    assert refused == {UsePurpose.TRAIN_AI, UsePurpose.AI_INPUT, UsePurpose.RESEARCH}


def read(scheme: Scheme, statement: str) -> list[Preference]:
    """The preferences that the parser of ``scheme`` finds in a statement as the page about the crawler prints it."""
    value = statement.partition(": ")[2]
    match scheme:
        case Scheme.CONTENT_USAGE:
            return content_usage(value, "header") or []
        case Scheme.CONTENT_SIGNAL:
            return content_signal(value, "header")
        case Scheme.TDMREP:
            return tdm_reservation(value, "header", statement)
        case _:
            return robots_terms(statement, "header", statement)


@pytest.mark.parametrize(
    ("purpose", "schemes"),
    [
        (UsePurpose.SEARCH, {Scheme.CONTENT_USAGE, Scheme.CONTENT_SIGNAL}),
        (UsePurpose.TRAIN_AI, {Scheme.CONTENT_USAGE, Scheme.CONTENT_SIGNAL, Scheme.TDMREP, Scheme.NOAI}),
        (UsePurpose.AI_INPUT, {Scheme.CONTENT_USAGE, Scheme.CONTENT_SIGNAL, Scheme.TDMREP, Scheme.NOAI}),
        (UsePurpose.ARCHIVE, set()),
        (UsePurpose.RESEARCH, {Scheme.TDMREP}),
    ],
)
def test_the_statements_that_refuse_a_purpose_are_read_as_refusals(purpose: UsePurpose, schemes: set[Scheme]) -> None:
    statements = refusals_of(purpose)
    assert set(statements) == schemes
    for scheme, statement in statements.items():
        assert first_refusal(read(scheme, statement), [purpose]) is not None


def test_documents_and_images_are_recorded_only() -> None:
    for category, purpose in product(("license", "tdm-policy", "train-ai-images"), UsePurpose):
        assert first_refusal([one(category, "n")], [purpose]) is None


def test_the_categories_of_a_purpose_are_those_that_refuse_it() -> None:
    for purpose in UsePurpose:
        refusing = [name for name in sorted(COVERED) if first_refusal([one(name, "n")], [purpose])]
        assert categories_for([purpose]) == refusing


def test_the_evidence_names_the_line() -> None:
    assert sentence_of(one("search", "n", "robots.txt", 4)) == "line 4 of robots.txt, Content-Usage: search=n"
    assert sentence_of(one("search", "n")) == "header Content-Usage: search=n"
