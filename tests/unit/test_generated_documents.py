"""The generated documents say what the program says."""

from __future__ import annotations

from dataclasses import fields

import pytest

from crawler.settings.keys import KEYS, SECTIONS
from crawler.settings.settings import Settings
from tests.docs import DOCUMENTS, ROOT


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_generated_document_is_up_to_date(name: str) -> None:
    assert (ROOT / name).read_text("utf-8") == DOCUMENTS[name](), f"{name} is stale: run `python -m tests.docs`"


def test_every_key_has_a_section_a_field_of_its_own_and_a_sentence() -> None:
    assert list(dict.fromkeys(key.section for key in KEYS.values())) == list(SECTIONS)
    assert len({key.path for key in KEYS.values()}) == len(KEYS)
    assert [key.name for key in KEYS.values() if not key.help.endswith((".", "'."))] == []
    options = [key.option for key in KEYS.values() if key.option]
    assert len(set(options)) == len(options)


def test_every_field_of_the_settings_is_in_the_table_or_is_a_constant() -> None:
    settings = Settings()
    held = {
        f"{section.name}.{field.name}"
        for section in fields(settings)
        for field in fields(getattr(settings, section.name))
    }
    assert held - {key.path for key in KEYS.values()} == {
        "identity.signature_lifetime_s",
        "limits.claimed_groups",
        "politeness.slow_cap_s",
        "politeness.workers",
        "robots.max_redirects",
        "robots.min_fresh_s",
    }
