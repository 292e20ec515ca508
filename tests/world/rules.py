"""What the drawn robots.txt files forbid, by code of its own: the files have few forms, so a few lines suffice.

A file has records; each has one ``User-agent`` line and plain prefixes without wildcards. The two readings then differ
in one respect: the 1996 draft takes the first rule that matches, RFC 9309 the longest. ``strict`` obeys both.
"""

from __future__ import annotations

from dataclasses import dataclass

from crawler.model import Reading

TOKEN = "SimulatedBot"


@dataclass(frozen=True, slots=True)
class Rules:
    """The record that applies to the crawler: (allowed?, prefix) in the order of the file, and its other lines."""

    prefixes: tuple[tuple[bool, str], ...] = ()
    crawl_delay_s: float = 0.0
    main_host: str | None = None

    def allow(self, path: str, reading: Reading) -> bool:
        """Whether ``path`` may be fetched."""
        if path == "/robots.txt":
            return True
        matching = [(len(prefix), allowed) for allowed, prefix in self.prefixes if prefix and path.startswith(prefix)]
        first = matching[0][1] if matching else True
        longest = max(matching)[1] if matching else True  # of equally long ones, Allow
        return longest if reading is Reading.RFC9309 else first and longest


def rules_of(text: str) -> Rules:
    """The rules for :data:`TOKEN`: those of its own record, else of the record for all."""
    records = {}
    for block in text.split("\n\n"):
        lines = [line.split(": ", 1) for line in block.splitlines()]
        if lines:
            records[lines[0][1].lower()] = lines[1:]
    fields = records.get(TOKEN.lower(), records.get("*", []))
    return Rules(
        tuple((name == "Allow", value) for name, value in fields if name in ("Allow", "Disallow")),
        max((float(value) for name, value in fields if name == "Crawl-delay"), default=0.0),
        next((value for name, value in fields if name == "Host"), None),
    )
