"""Product tokens that are a part of the names of other robots: the 1996 draft, version of 4 December, 3.2.1."""

from __future__ import annotations

import pytest

from crawler.robots.tokens import COMMON_NAMES, warning_about


@pytest.mark.parametrize("token", ["bot", "Bot", "crawler", "google", "web", "spider"])
def test_a_token_within_other_names_is_warned_about(token: str) -> None:
    warning = warning_about(token)
    assert warning is not None
    first = next(name for name in COMMON_NAMES if token.lower() in name)
    assert f'"{token}" is a part of the names of other robots ({first}' in warning


@pytest.mark.parametrize("token", ["PoliteCrawler", "FigTree", "", "wget"])
def test_a_token_of_its_own_is_not(token: str) -> None:
    assert warning_about(token) is None


def test_the_names_are_tokens_in_lower_case_and_sorted_once_each() -> None:
    assert len(set(COMMON_NAMES)) == len(COMMON_NAMES)
    assert all(name == name.lower() for name in COMMON_NAMES)
