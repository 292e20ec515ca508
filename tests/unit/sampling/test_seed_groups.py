"""Where the seeds of a sample went, and how much the frame may lack."""

from __future__ import annotations

from crawler.sampling.seed_groups import describe_seed_groups, groups_of

SEEDS = [
    {"url": "http://a.test/", "outcome": "fetched", "leads_to": None},
    {"url": "http://b.test/", "outcome": "fetched", "leads_to": "http://www.b.test/"},
    {"url": "http://c.test/", "outcome": "silent", "leads_to": None},
    {"url": "http://d.test/", "outcome": "closed", "leads_to": None},
    {"url": "http://e.test/", "outcome": "left_scope", "leads_to": "http://e.example/"},
]
FRAME = {"http://a.test": 30, "http://b.test": 1, "http://www.b.test": 40, "http://d.test": 1}


def test_every_seed_is_in_one_group() -> None:
    groups = groups_of(SEEDS, FRAME, is_list=False)
    assert [(group.became, group.seeds, group.frame, group.frame_at_most) for group in groups] == [
        ("as planned", 1, 30, 30),
        ("at the host that it redirects to", 1, 41, 41),
        ("closed", 1, 1, 40),
        ("left_scope", 1, 0, 40),
        ("silent", 1, 0, 40),
    ]


def test_what_the_frame_may_lack_is_told() -> None:
    told = describe_seed_groups(groups_of(SEEDS, FRAME, is_list=False))
    assert told[0].startswith("Seeds: 5 (1 sampled as planned with 30 URLs in the frame, 1 sampled at the host")
    assert "the sites of 3 seeds. At most 62.3 % of the URLs" in told[1]


def test_a_list_of_seeds_has_no_frame_of_pages() -> None:
    groups = groups_of(SEEDS, {}, is_list=True)
    assert {group.frame for group in groups} == {None}
    assert len(describe_seed_groups(groups)) == 1
    assert describe_seed_groups([]) == []
