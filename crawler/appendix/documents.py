"""The documents of a data appendix: read me, citation, and a template for a paper, filled in as far as the store knows.

The texts stand in ``templates/``. What only the authors know stands in ``METHODS.md`` in square brackets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crawler.appendix.study import Study
from crawler.appendix.tables import QUANTITIES, Table, copy_of
from crawler.audit.document import in_markdown
from crawler.audit.run_audit import AuditResult
from crawler.audit.run_settings import READINGS
from crawler.cli.templates import template_environment
from crawler.clock import iso
from crawler.formatting import many, seconds
from crawler.frontier.sample_design import Method, SitesBy
from crawler.sampling import load
from crawler.sampling.design_file import drawn_in_words
from crawler.version import VERSION

if TYPE_CHECKING:
    from crawler.sampling import Survey

_DOI = re.compile(r"10\.[0-9]{4,9}/\S+")


def write_documents(
    folder: Path,
    study: Study,
    audit: AuditResult,
    survey: Survey | None,
    tables: Sequence[Table],
    counts: Mapping[str, int],
) -> None:
    """Write the documents to ``folder``. ``survey`` is ``None`` without a sample; ``counts`` has the rows of tables."""
    environment = template_environment("crawler.appendix", finalize=in_markdown)
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False}
    environment.filters.update(iso=iso, figure=lambda number: f"{number:,}", seconds=seconds)
    environment.tests["doi"] = _DOI.fullmatch
    for name in ("README.md", "CITATION.cff", "METHODS.md"):
        text = environment.get_template(f"{name}.j2").render(
            study=study,
            audit=audit,
            survey=survey,
            tables=tables,
            counts=counts,
            crawl=next((run for run in reversed(audit.runs) if not run.is_auxiliary), audit.runs[-1]),
            estimates=load("rendering") if survey else None,
            QUANTITIES=QUANTITIES,
            computed=lambda name, variable: copy_of(name, variable) or variable,
            READINGS=READINGS,
            Method=Method,
            SitesBy=SitesBy,
            drawn_in_words=drawn_in_words,
            VERSION=VERSION,
            many=many,
        )
        text = re.sub(r"\n{3,}", "\n\n", text.strip()) + "\n"
        (folder / name).write_text(text, "utf-8", errors="backslashreplace")
