"""The preferences that a robots.txt states for a path: draft-ietf-aipref-attach, Content Signals, RSL."""

from __future__ import annotations

from textwrap import dedent

import pytest

from crawler.model import Reading
from crawler.preferences.purposes import MAX_PREFERENCES, UsePurpose, first_refusal
from crawler.robots.check import check_case
from crawler.robots.preferences import MAX_LINES, NO_PREFERENCES, preference_rules
from crawler.robots.readings import SiteRules, read
from crawler.robots.response import RobotsSettings
from crawler.robots.text import parse

#: draft-ietf-aipref-attach, 3.4, "Example".
EXAMPLE = """\
User-Agent: *
Allow: /
Disallow: /never/
Content-Usage: train-ai=n
Content-Usage: /ai-ok/ train-ai=y

User-Agent: ExampleBot
Allow: /
Content-Usage: train-ai=y
"""


def rules(text: str, token: str = "figtree", reading: Reading = Reading.STRICT) -> SiteRules:
    return read(parse(text.encode()), token=token, reading=reading, site="http://a.example")


def usage(text: str, path: str, token: str = "figtree") -> list[tuple[str, str, int | None]]:
    return [(one.category, one.value, one.line) for one in rules(text, token).preferences.of(path)]


def group(*lines: str) -> str:
    return "\n".join(["User-agent: *", *lines, "Allow: /", ""])


@pytest.mark.parametrize("reading", Reading)
def test_aipref_attach_3_4_example(reading: Reading) -> None:
    ours = rules(EXAMPLE, reading=reading)
    table = {"/test": ("n", 4), "/ai-ok/test": ("y", 5)}
    for path, (value, line) in table.items():
        assert ours.verdict(path).allowed
        (one,) = ours.preferences.of(path)
        assert (one.category, one.value, one.line, one.source) == ("train-ai", value, line, "robots.txt")
    assert rules(EXAMPLE, "ExampleBot", reading).preferences.of("/ai-ok/")[0].line == 9


@pytest.mark.parametrize("reading", [Reading.RFC9309, Reading.STRICT])
def test_aipref_attach_3_4_a_path_that_is_closed_has_no_preferences(reading: Reading) -> None:
    ours = rules(EXAMPLE, reading=reading)
    assert not ours.verdict("/never/test").allowed
    assert ours.stated_for("/never/test") == ()
    assert [one.value for one in ours.stated_for("/test")] == ["n"]


def test_aipref_attach_3_4_in_the_answers_of_robots_check() -> None:
    case = {"robots": EXAMPLE, "agent": "figtree", "reading": "rfc9309"}
    assert "preferences" not in check_case({**case, "url": "http://a.example/never/test"})
    (one,) = check_case({**case, "url": "http://a.example/ai-ok/test"})["preferences"]  # type: ignore[misc]
    assert (one["scheme"], one["category"], one["value"], one["line"]) == ("content-usage", "train-ai", "y", 5)


def test_aipref_attach_3_1_the_longest_path_wins_in_any_order() -> None:
    lines = ["Content-Usage: /a/b/ search=n", "Content-Usage: train-ai=n", "Content-Usage: /a/ train-ai=y"]
    for text in (group(*lines), group(*reversed(lines))):
        assert [pair[:2] for pair in usage(text, "/a/b/c")] == [("search", "n")]
        assert [pair[:2] for pair in usage(text, "/a/c")] == [("train-ai", "y")]
        assert [pair[:2] for pair in usage(text, "/c")] == [("train-ai", "n")]


def test_aipref_attach_3_1_a_path_of_one_octet_is_longer_than_none() -> None:
    assert usage(group("Content-Usage: train-ai=n", "Content-Usage: / train-ai=y"), "/x") == [("train-ai", "y", 3)]


def test_aipref_attach_3_1_statements_for_identical_paths_apply_separately() -> None:
    text = group("Content-Usage: /a train-ai=y", "Content-Usage: /a train-ai=n, search=y")
    assert usage(text, "/a") == [("train-ai", "y", 2), ("train-ai", "n", 3), ("search", "y", 3)]


def test_aipref_attach_3_1_paths_have_wildcards_and_escapes() -> None:
    text = group("Content-Usage: /*.pdf$ train-ai=n", "Content-Usage: /a%20b search=n")
    assert usage(text, "/x/y.pdf") == [("train-ai", "n", 2)]
    assert usage(text, "/x/y.pdf?z") == []
    assert usage(text, "/a%20b/c") == [("search", "n", 3)]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (" Content-Usage \t: train-ai=n # why", "n"),
        ("CONTENT-USAGE:/\ttrain-ai=n", "n"),
        ("Content-Usage: /   train-ai=n", "n"),
        ("content-usage:train-ai=n", "n"),
    ],
)
def test_aipref_attach_3_2_blanks_and_comments(line: str, found: str) -> None:
    assert [value for _, value, _ in usage(group(line), "/x")] == [found]


@pytest.mark.parametrize("line", ["Content-Usage: /path", "Content-Usage:", "Content-Usage: Train-AI=n"])
def test_aipref_attach_3_2_a_line_that_states_nothing(line: str) -> None:
    assert usage(group(line), "/path") == []


def test_a_void_line_leaves_the_wider_line_in_force() -> None:
    text = group("Content-Usage: train-ai=n", "Content-Usage: /a Train-AI=y")
    assert usage(text, "/a") == [("train-ai", "n", 2)]


def test_a_valid_statement_without_a_known_label_hides_the_wider_line() -> None:
    assert usage(group("Content-Usage: train-ai=n", "Content-Usage: /a x=y"), "/a") == [("x", "y", 3)]


def test_aipref_attach_3_1_all_groups_of_the_robot_are_merged_and_the_others_left_out() -> None:
    text = (
        "User-agent: figtree\nContent-Usage: train-ai=n\n\nUser-agent: other\nUser-agent: FigTree/2\n"
        "Content-Usage: /a search=n\nUser-agent: third\nContent-Usage: /a search=y\n"
    )
    assert usage(text, "/a") == [("search", "n", 6)]
    assert usage(text, "/b") == [("train-ai", "n", 2)]
    assert usage(text, "/b", "unnamed") == []


def test_a_preference_line_closes_the_list_of_agents() -> None:
    text = "User-agent: a\nContent-Signal: search=no\nUser-agent: b\nAllow: /\n"
    assert usage(text, "/", "a") == [("search", "n", 2)]
    assert usage(text, "/", "b") == []


def test_a_preference_line_decides_on_no_group_of_the_exclusion_rules() -> None:
    """A robot that does not know the drafts merges the two User-agent lines; so do the rules about requests."""
    text = "User-agent: figtree\nContent-Usage: train-ai=n\nUser-agent: b\nDisallow: /\n"
    assert not rules(text, reading=Reading.RFC9309).verdict("/x").allowed


def test_a_line_above_all_groups_is_meant_for_every_robot() -> None:
    assert usage("Content-Signal: ai-train=no\nUser-agent: other\nDisallow: /\n", "/") == [("train-ai", "n", 1)]


def test_content_signals_by_group_with_a_path() -> None:
    text = group("Content-Signal: search=yes, ai-train=no", "Content-Signal: /open/ ai-train=yes")
    assert usage(text, "/x") == [("search", "y", 2), ("train-ai", "n", 2)]
    assert usage(text, "/open/x") == [("train-ai", "y", 3)]


def test_the_schemes_do_not_hide_one_another() -> None:
    text = group("Content-Signal: /a/b ai-train=no", "Content-Usage: /a train-ai=y")
    assert {(value, line) for _, value, line in usage(text, "/a/b")} == {("n", 2), ("y", 3)}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("L: a\nU: other\nL: b\nU: figtree\nL: c\nDisallow: /x\nL: d\n", "cd"),
        ("L: a\nU: *\nL: b\nU: figtree\nDisallow: /x\n", "a"),
        ("L: a\nL: b\nU: *\nDisallow: /x\n", "ab"),
        ("U: *\nAllow: /\nL: a\n\nU: other\nL: b\n", "a"),
        ("U: other\nL: b\nAllow: /\nL: c\n# one for all\n\nL: a\nL: d\n", "ad"),
        ("U: other\nL: b\n", ""),
    ],
)
def test_rsl_4_4_2_a_licence_in_the_group_of_the_robot_replaces_those_outside_groups(text: str, wanted: str) -> None:
    text = text.replace("U:", "User-agent:").replace("L: ", "License: https://a.example/")
    assert "".join(one.value[-1] for one in rules(text).preferences.of("/y")) == wanted


def test_a_file_without_preferences_costs_nothing() -> None:
    assert rules("User-agent: *\nDisallow: /a\n").preferences is NO_PREFERENCES


def test_the_lines_that_are_read_are_bounded() -> None:
    lines = [f"Content-Usage: /*{n}a*b train-ai=n" for n in range(3 * MAX_LINES)]
    found = rules(group(*lines)).preferences
    assert len(found.usage) == MAX_LINES == found.size


def test_the_preferences_of_a_page_are_bounded_and_lose_no_refusal() -> None:
    lines = [f"License: http://l{n}.example/{'x' * 150}" for n in range(MAX_LINES)]
    lines += [f"License: http://l.example/{'x' * 1_000}"]
    lines += ["Content-Usage: /a* search=y", "Content-Usage: /*a train-ai=n"] * 200
    lines += ["Content-Usage: /*a search=n", "Content-Signal: ai-input=no, search=yes"]
    found = rules(group(*lines)).preferences
    kept = found.of("/a")
    assert len(kept) == MAX_PREFERENCES
    kinds = {(one.scheme, one.category, one.value) for one in kept if one.scheme != "rsl"}
    assert kinds == {
        *(("content-usage", "search", value) for value in "yn"),
        ("content-usage", "train-ai", "n"),
        *(("content-signal", "ai-input", "n"), ("content-signal", "search", "y")),
    }
    assert len(found.licenses) == MAX_PREFERENCES
    assert all(len(one.value) <= 1_000 and len(one.text) <= 201 for one in kept)


def test_a_longer_path_wins_before_preferences_are_cut() -> None:
    lines = ["Content-Usage: /a train-ai=y"] * 100 + ["Content-Usage: /a/b train-ai=n"]
    assert [value for _, value, _ in usage(group(*lines), "/a/b")] == ["n"]


def test_a_licence_with_an_overlong_url_says_nothing() -> None:
    assert rules(f"License: http://l.example/{'x' * 1_000}\n").preferences.licenses == ()


def test_groups_for_policy_tokens_refuse_a_purpose_by_path() -> None:
    text = """
        User-agent: *
        Disallow: /closed

        User-agent: __usage_ai-training
        User-agent: Google-Extended
        Disallow: /
        Allow: /free
        Disallow: /free/not

        User-agent: CCBot
        Disallow:
    """

    def said(path: str, reading: Reading = Reading.STRICT) -> list[tuple[str, str, int | None]]:
        tokens = RobotsSettings(reading).policy_tokens
        rules = preference_rules(parse(dedent(text).encode()).lines, "figtree", tokens)
        return [(one.text.rpartition(" ")[2], one.value, one.line) for one in rules.of(path)]

    assert said("/a") == [("__usage_ai-training", "n", 7), ("Google-Extended", "n", 7)]
    assert said("/a", Reading.RFC9309) == [("__usage_ai-training", "n", 7)]
    assert said("/free/1", Reading.DRAFT1996) == [("__usage_ai-training", "y", 8)]
    assert said("/free/not", Reading.RFC9309) == [("__usage_ai-training", "n", 9)]
    tokens = [("train-ai", "__usage_ai-training")]
    (one,) = preference_rules(parse(dedent(text).encode()).lines, "figtree", tokens).of("/")
    assert (one.scheme, one.category, one.source) == ("policy-token", "train-ai", "robots.txt")
    assert first_refusal([one], [UsePurpose.TRAIN_AI]) == one
    assert first_refusal([one], [UsePurpose.SEARCH]) is None


def test_the_group_for_all_robots_is_none_for_a_policy_token() -> None:
    lines = parse(b"User-agent: *\nDisallow: /\n\nUser-agent: __usage_ai-training-2\nDisallow: /").lines
    assert preference_rules(lines, "figtree", RobotsSettings().policy_tokens).of("/") == ()
