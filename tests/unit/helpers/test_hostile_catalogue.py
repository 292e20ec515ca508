"""The catalogue of the hostile web: names that can be hosts, and a table of open faults that names nothing else."""

from __future__ import annotations

import re
from collections import Counter

from tests.hostile import catalogue
from tests.hostile.mail import MAILS
from tests.hostile.rup import CLIENTS

NAMES = Counter(
    [
        *(one.name for one in (*catalogue.ALL, *catalogue.HEALTHY)),
        *(one.name for one in (*MAILS, *CLIENTS)),
        "client-server",
    ]
)


def test_each_behaviour_has_a_name_of_its_own_that_can_be_a_host() -> None:
    assert len(catalogue.ALL) >= 100
    assert [name for name, count in NAMES.items() if count > 1] == []
    assert [name for name in NAMES if not re.fullmatch(r"[a-z0-9_-]{1,63}", name)] == []
