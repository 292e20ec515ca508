"""Pages that are made to tie up an HTML parser, for the hostile web and for its benchmark."""

from __future__ import annotations

from crawler.demo.pages import Page

COUNT = 100_000


def numbered(template: str, count: int) -> str:
    return "".join(template.replace("#", str(number)) for number in range(count))


#: 50 kB that make a tree of more than a gigabyte.
REOPENED = "<p>" + numbered("<b a#>", 2_000) + "<p>x" * 2_000

HOSTILE: dict[str, str | Page] = {
    "nested-tags": "<div>" * COUNT,
    "nested-and-closed": "<div>" * COUNT + "</div>" * COUNT,
    "hidden-ends": "<div><!--</div>-->" * COUNT,
    "attributes": f"<p {numbered('a#=1 ', COUNT)}>",
    "tag-names": numbered("<t#>", COUNT),
    "formatting": numbered("<p><font size=#>x", COUNT),
    "tables": "<table><tr><td>" * COUNT,
    "links": numbered("<a href='/other/#'>x</a>", COUNT),
    "long-links": f"<base href='/{'b' * 370}/'>" + numbered("<a href=%41#>x</a>", COUNT),
    "directives": "<meta name=robots content=a>" * 30_000,
    "many-elements": "<p>x" * 2_500_000,
    **{f"reopened-{codec}": Page(REOPENED.encode(codec), content_type=f"text/html; charset={charset}")
       for codec, charset in (("ascii", "utf-8"), ("utf-16", "utf-16"), ("iso2022_jp", "iso-2022-jp"))},
}  # fmt: skip
