"""A template for the sections of a paper on methods and results, filled in as far as the store knows.

The text stands in ``templates/METHODS.md.j2``. What only the authors know stands there in square brackets.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from crawler.appendix.study import Study
from crawler.appendix.tables import QUANTITIES, copy_of
from crawler.audit.document import in_markdown
from crawler.audit.run_audit import AuditResult
from crawler.audit.run_settings import READINGS
from crawler.cli.templates import template_environment
from crawler.clock import iso
from crawler.formatting import many, seconds
from crawler.frontier.sample_design import Method, Per, SitesBy
from crawler.sampling import load
from crawler.version import VERSION

if TYPE_CHECKING:
    from crawler.sampling import Survey


def methods(study: Study, audit: AuditResult, survey: Survey | None) -> str:
    """The text of ``METHODS.md``. Without a sample, ``survey`` is ``None``."""
    environment = template_environment("crawler.appendix", finalize=in_markdown)
    environment.filters.update(iso=iso, figure=lambda number: f"{number:,}", seconds=seconds)
    text = environment.get_template("METHODS.md.j2").render(
        study=study,
        audit=audit,
        survey=survey,
        crawl=next((run for run in reversed(audit.runs) if not run.is_auxiliary), audit.runs[-1]),
        estimates=load("rendering") if survey else None,
        QUANTITIES=QUANTITIES,
        computed=lambda name, variable: copy_of(name, variable) or variable,
        READINGS=READINGS,
        Method=Method,
        Per=Per,
        SitesBy=SitesBy,
        VERSION=VERSION,
        many=many,
    )
    return re.sub(r"\n{3,}", "\n\n", text.strip()) + "\n"
