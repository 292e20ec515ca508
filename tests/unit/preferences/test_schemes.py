"""The parser of each scheme of preferences about use, by the sections of its document."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model import Preference
from crawler.preferences.schemes import (
    content_signal,
    content_usage,
    robots_terms,
    rsl_license,
    tdm_policy,
    tdm_reservation,
)


def said(found: list[Preference] | None) -> dict[str, str] | None:
    return None if found is None else {one.category: one.value for one in found}


def usage(statement: str) -> dict[str, str] | None:
    return said(content_usage(statement, "header"))


# --- draft-ietf-aipref-vocab ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "preferences"),
    [
        pytest.param("train-ai=y, search=n", {"train-ai": "y", "search": "n"}, id="6: the example"),
        pytest.param("train-ai=n", {"train-ai": "n"}, id="6: other categories are unknown"),
        pytest.param("", {}, id="6: nothing is stated"),
        pytest.param("bots=n, train-ai=y", {"train-ai": "y", "bots": "n"}, id="6.4: unknown labels say nothing"),
        pytest.param("x.y_z*-1=n, bots=maybe", {"x.y_z*-1": "n"}, id="6.4: unknown labels are recorded"),
        pytest.param("train-ai=n;why=cost;x", {"train-ai": "n"}, id="6.4: unknown parameters are ignored"),
        pytest.param('train-ai=y, train-ai, search=n, search="n"', {}, id="6.5: the last value counts, no Token"),
        pytest.param("train-ai=n, train-ai=y", {"train-ai": "y"}, id="6.5: the last value counts"),
        pytest.param("train-ai;allow=n, train-ai=y", {"train-ai": "y"}, id="6.5: parameters of the value that counts"),
        pytest.param('train-ai;has;parameters="?"', {}, id="6.5: parameters of an unknown preference"),
        pytest.param("train-ai=yes, search=no", {}, id="6.5: other Tokens"),
        pytest.param("train-ai=Y, search=N", {}, id="6.3: Tokens are case-sensitive"),
        pytest.param("train-ai=?0, search=0", {}, id="6.5: values of other types"),
        pytest.param("train-ai=(n), search=n", {"search": "n"}, id="6.5: an inner list"),
        pytest.param("Train-AI=n", None, id="6.5: an upper-case key voids the statement"),
        pytest.param("search=n, Train-ai=y", None, id="6.5: also behind a sound key"),
        pytest.param("train-ai=n,", None, id="6.5: a trailing comma"),
        pytest.param("train-ai=n search=n", None, id="6.5: a missing comma"),
        pytest.param("train-ai: n", None, id="6.5: no dictionary"),
        pytest.param("train-ai=n, \u0455earch=n", None, id="6.2: not ASCII"),
    ],
)
def test_aipref_vocab_6_format(statement: str, preferences: dict[str, str] | None) -> None:
    assert usage(statement) == preferences


def test_a_statement_beyond_the_bound_is_void() -> None:
    assert usage("train-ai=n, " + "a=y, " * 1000 + "b=y") is None


@given(st.text(max_size=60) | st.text('train-i=yn,;"?01()@: ', max_size=60))
def test_no_statement_raises(text: str) -> None:
    content_usage(text, "header")
    content_signal(text, "header")
    tdm_reservation(text, "header", text)
    tdm_policy(text, "header", text, "http://a.example/")
    rsl_license(text, "robots.txt", 1, text)
    robots_terms(text, "META", text)


# --- Content Signals --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "preferences"),
    [
        ("ai-train=no, search=yes, ai-input=yes", {"train-ai": "n", "search": "y", "ai-input": "y"}),
        ("search=yes,ai-train=no", {"search": "y", "train-ai": "n"}),
        (" Search = YES , AI-Train = No", {"search": "y", "train-ai": "n"}),
        ("ai-train=maybe, ai_train=no, train-ai=no", {}),
        ("search", {}),
        ("search=yes,ai-train=no,use=reference", {"search": "y", "train-ai": "n", "use": "reference"}),
        ("Use = Immediate", {"use": "immediate"}),
        ("use=full, use=reference, use=full", {"use": "reference"}),
        ("use=no, use", {}),
        ("search=no, search=yes", {"search": "n"}),
        ("search=yes, search=no", {"search": "n"}),
        ("", {}),
    ],
)
def test_content_signals(statement: str, preferences: dict[str, str]) -> None:
    assert said(content_signal(statement, "robots.txt")) == preferences


# --- TDMRep -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "preferences"), [("1", {"tdm": "n"}), (" 0 ", {"tdm": "y"}), ("2", {}), ("", {})])
def test_tdmrep_tdm_reservation(value: str, preferences: dict[str, str]) -> None:
    assert said(tdm_reservation(value, "header", "")) == preferences


def test_tdmrep_tdm_policy_is_a_url() -> None:
    base = "https://a.example/b/c"
    assert said(tdm_policy("policy.json", "META", "", base)) == {"tdm-policy": "https://a.example/b/policy.json"}
    assert said(tdm_policy("mailto:a@b.example", "META", "", base)) == {}


# --- RSL 1.0 ----------------------------------------------------------------------------------


def test_rsl_license_is_an_absolute_url() -> None:
    (one,) = rsl_license("https://rsl.example/license.xml", "robots.txt", 3, "License: https://rsl.example/license.xml")
    assert one == Preference(
        "rsl",
        "license",
        "https://rsl.example/license.xml",
        "robots.txt",
        3,
        "License: https://rsl.example/license.xml",
    )
    assert rsl_license("/license.xml", "robots.txt", 3, "") == []
    assert rsl_license("MIT", "robots.txt", 3, "") == []


# --- noai, noimageai --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "is_image", "preferences"),
    [
        ("noai", False, {"train-ai": "n", "ai-input": "n"}),
        ("noindex,NOAI, nofollow", False, {"train-ai": "n", "ai-input": "n"}),
        ("noimageai", False, {"train-ai-images": "n"}),
        ("noimageai", True, {"train-ai": "n", "ai-input": "n"}),
        ("noai, noimageai", False, {"train-ai": "n", "ai-input": "n", "train-ai-images": "n"}),
        ("noai, noimageai", True, {"train-ai": "n", "ai-input": "n"}),
        ("noairship", False, {}),
        ("all", False, {}),
    ],
)
def test_noai_and_noimageai(content: str, is_image: bool, preferences: dict[str, str]) -> None:
    assert said(robots_terms(content, "META", content, is_image=is_image)) == preferences
