"""The documentation builds as a site without a warning: links resolve, and navigation and search have each page."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.command import ROOT

MISSING = [name for name in ("sphinx", "furo", "myst_parser") if find_spec(name) is None]


@pytest.mark.long
@pytest.mark.skipif(bool(MISSING), reason=f"the extra 'docs' is missing: {', '.join(MISSING)}")
def test_the_documentation_builds_as_a_site(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", ROOT / "docs", tmp_path / "site"]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stderr) == (0, "")
    start = (tmp_path / "site" / "README.html").read_text()
    for page in ("examples/tutorial", "examples/search", "cli", "settings", "store", "api", "decisions/README"):
        assert f'href="{page}.html"' in start
    assert 'action="search.html"' in start
    assert '"examples/tutorial"' in (tmp_path / "site" / "searchindex.js").read_text()
    assert "polite-crawler.example/source/config/crontab" in (tmp_path / "site" / "schedule.html").read_text()
