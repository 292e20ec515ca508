"""Every view of the store with its columns: type and meaning.

Exports, the codebook of the data appendix and ``docs/views.md`` are made from this table. The statements of the views
stand in ``crawler/store/sql/views.sql``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from crawler.model import RobotsAction


class ColumnType(StrEnum):
    """A column's type. Any column may be NULL."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    TIME = "time"  # seconds since the epoch
    YES = "yes"  # 0 or 1
    JSON = "json"  # a JSON document, as text
    BYTES = "bytes"


class Column(NamedTuple):
    """The type of a column, and what it means."""

    type: ColumnType
    meaning: str


#: What a column means wherever it stands, unless a table says otherwise.
_MEANINGS = {
    "url": "the canonical address (WHATWG URL Standard)",
    "url_id": "the number of the URL, the key between tables",
    "site": "scheme, host and port; the default port is left out",
    "host": "the host of the site",
    "registered_domain": "the registered domain of the host by the Public Suffix List; the host if it has none",
    "run_id": "the number of the run",
    "started_at": "when it began",
    "finished_at": "when it ended; empty if no end was recorded",
    "ended_code": "why it ended, as a code",
    "ended_by": "why it ended, as a sentence",
    "state": "queued, fetched, redirected, excluded or failed",
    "reason_code": "why the URL is in this state, as a code (docs/reasons.md)",
    "reason": "why the URL is in this state, as a sentence",
    "stratum": "the stratum of the URL; empty if the whole frame is one stratum",
    "status": "the HTTP status of the answer",
    "fetched_at": "when the answer was complete",
    "valid_from": "when the crawl began to obey this answer",
    "valid_until": "when the answer expired, or a newer one replaced it",
    "version_sha256": "SHA-256 of the text (in a data appendix: robots/VERSION_SHA256.txt); empty if there is none",
    "action": f"the meaning of the answer: {', '.join(RobotsAction)}",
    "note": "what was left out, or why there is no usable answer",
    "robots_copy": "the number of the answer for robots.txt",
    "tls_version": "the version of TLS; empty without TLS",
    "address": "the IP address of the server; empty if there was no connection, or behind a proxy",
    "bytes": "octets received, headers included",
    "content_type": "the media type",
    "depth": "the shortest known way from a seed, in links",
    "title": "the title",
    "description": "the META tag DESCRIPTION",
    "keywords": "the META tag KEYWORDS",
    "noindex": "the page says NOINDEX, could not be read, or refuses a declared purpose",
    "body_sha256": "SHA-256 of the decoded body, if it is kept",
    "body_bytes": "size of the decoded body",
    "charset": "the encoding by which the page was decoded",
    "etag": "the header ETag",
    "last_modified": "the header Last-Modified",
    "version": "the number of the version; a revisit that finds a change makes a new one",
    "last_seen_at": "when a visit last found this version",
    "gone_at": "since when the site answers that there is no such page",
    "text_sha256": "SHA-256 of the text without mark-up and white space",
    "language": "the language tag that the page declares",
    "headers": "the response headers that were kept, as JSON",
    "kind": "page, sitemap or rup",
    "scheme": "how it was stated, such as Content-Usage",
    "category": "the use",
    "value": "y, n, or the URL of a policy or licence",
    "source": "where it was stated: the page, a header, robots.txt or another file",
    "line": "the line of robots.txt or tdmrep.json",
    "text": "the statement as written",
    "said_at": "the visit at which it was stated",
    "anchor": "the text of the first link to the target",
    "rel": "the attribute rel of that link",
    "in_sites": "the sites of these pages",
    "main_site": "the site that stands for it",
    "cgi": "the address of the server",
    "refused": "changes that were refused",
}


def columns_of(lines: Iterable[str]) -> dict[str, Column]:
    """Columns from lines such as ``url text: the page``. Without a meaning, a column means what it means elsewhere."""
    parted = [line.partition(": ") for line in lines]
    words = [(head.split(" "), meaning) for head, _, meaning in parted]
    return {name: Column(ColumnType(kind), meaning or _MEANINGS[name]) for (name, kind), meaning in words}


# view: its rows, and a line for each column in order.
_VIEWS: Mapping[str, str] = {
    "pages": """\
the newest version of each page that was fetched
url text
status integer
content_type text
fetched_at time
depth integer
title text
description text
keywords text
canonical_url text: the URL that the page names as canonical
document_state text: the META tag DOCUMENT-STATE
noindex yes
nofollow yes: the page says NOFOLLOW
body_sha256 text
body_bytes integer
site text
charset text
meta_url text: the META tag URL
etag text
last_modified text
other_schemes json: numbers of links that no crawler follows, by scheme, as JSON
directives json: the directives of the page and its headers, with their source, as JSON
note text
url_id integer
version integer
last_seen_at time
gone_at time
text_sha256 text
preferences json: preferences about use that the page states, as JSON
robots_preferences json: preferences about use that robots.txt stated at the last visit, as JSON
language text
host text
registered_domain text
headers json
address text
tls_version text
cluster_id integer: the url_id of the page that stands for this one and its near-duplicates; empty without any
soft_404 yes: like the answer of its site to a path that cannot exist; empty if it was not compared""",
    "resources": """\
the hosts of the scripts, images, style sheets and frames of pages
url text: the page
kind text: script, image, style or frame
host text: the host of the resource
registered_domain text: the registered domain of that host
times integer: how often the page names that host
site text: the site of the page
url_id integer""",
    "preferences": """\
preferences about use that pages, their headers and robots.txt state
url_id integer
scheme text
category text
value text
source text
line integer
text text
said_at time
url text: the page
site text: the site of the page""",
    "version_preferences": """\
the same of earlier versions of pages
url_id integer
version integer: the number of the version
scheme text
category text
value text
source text
line integer
text text
said_at time
url text: the page
site text: the site of the page""",
    "page_versions": """\
every version of each page
url text
version integer
fetched_at time
last_seen_at time
status integer
content_type text
charset text
title text
description text
keywords text
noindex yes
body_sha256 text
body_bytes integer
text_sha256 text
etag text
last_modified text
gone_at time
site text
url_id integer
language text
headers json
address text
tls_version text""",
    "revisits": """\
the pages that are visited again
url text
due_at time: when the next visit is due
checked_at time: when the last visit was
changes number: estimate X of docs/revisits.md: changes that visits found, discounted over time
watched_s number: estimate T of docs/revisits.md: seconds of observation, discounted over time
why text: why the visit is due then
hint text: the source of the hint that moved the visit
hinted_at time: when the hint was given
failures integer: failed visits in a row
state text: the state of the URL
kind text
site text
url_id integer""",
    "urls": """\
every URL that the crawl knows
url text
site text
state text
reason_code text
reason text
depth integer
discovered_from text: the page on which the URL was found first
next_at time: when the URL may be requested
target text: where it leads: by a redirect, as a mirror, or by a canonical link
attempts integer: failed attempts
seed yes: the URL is a seed
kind text
lastmod time: the last change by the site's sitemap
url_id integer""",
    "seeds": """\
what became of each seed
url text
site text
outcome text: what became of it (docs/seeds.md)
leads_to text: the end of its redirects
state text: the state of the URL at the end
reason_code text: why that URL is in this state, as a code (docs/reasons.md)
reason text: why that URL is in this state, as a sentence
pages integer: pages of the site at the end
failing_since time: since when its robots.txt or page has not answered
robots_problem text: what came in place of its robots.txt, while that is waited for
robots_attempts integer: how often that was requested in vain
next_at time: when it is requested again
registered_domain text
leads_to_domain text: the registered domain at the end
url_id integer: empty for a line that was no URL and was skipped; url is then its text, reason what is wrong with it
source text: the file of a skipped line, or what else named it
line integer: the number of a skipped line, from 1
meant text: the URLs that a skipped line perhaps meant, with blanks between""",
    "links": """\
every link of a page
source text: the page with the link
target text: the URL that it leads to
anchor text
rel text
source_id integer: the url_id of the source
target_id integer: the url_id of the target""",
    "links_glued": """\
the links between contents: mirrors, duplicates and redirects are folded
source text: the page with the link, at its main address
target text: the main address of the URL that it leads to
anchor text
rel text""",
    "ranks": """\
the result of the last crawler rank, by page
url text
pagerank number: the share of PageRank; the sum is 1
in_links integer: pages that link to it, itself included
in_sites integer
url_id integer
site text""",
    "site_ranks": """\
the result of the last crawler rank, by site
site text
pagerank number: the sum over the pages of the site
pages integer: ranked URLs of the site
in_links integer: pages of other sites that link to it
in_sites integer""",
    "near_duplicates": """\
the result of the last crawler duplicates
url text
representative text: the page that stands for the cluster
similarity number: how alike the texts of the two are, from 0 to 1
cluster_id integer: the url_id of the representative
url_id integer
site text""",
    "samples": """\
the draws of the sample
url text
site text
stratum text
probability number: of inclusion; of a random walk: of each single visit
site_probability number: with which the site was drawn; 1 if no sites were drawn first
method text: the method of the draw
walk integer: the number of the random walk
state text
reason_code text
reason text
draw integer: the number of the draw
url_id integer
page_id integer: the url_id of the page that answered for the URL, which a redirect may lead to; empty without any""",
    "sample_frame": """\
the frame from which the sample was drawn
url text
site text
url_id integer""",
    "sites": """\
every site
site text
main_site text
robots_status text: the answer for robots.txt, in words
robots_expires_at time: when the robots.txt in force expires
crawl_delay_s number: Crawl-delay of the robots.txt in force
delay_s number: the pause between two requests
next_at time: when the site may be asked
queued integer: URLs that wait
fetched integer: pages fetched
robots_action text: the meaning of the answer for robots.txt
robots_note text: what was left out of robots.txt
politeness_group text: the host or registered domain that is asked one request at a time
wait_code text: what the group waits for, as a code (docs/reasons.md)
waits_for text: what the group waits for, as a sentence
host text
registered_domain text
rest_count integer: how often the crawl has let the site rest because it refused, since it last answered otherwise
rests_until time: the end of the last of these rests
closed_at time: when the crawl closed the site for good because it refused; empty: it is not closed""",
    "workers": """\
every process that took part in a run
worker integer: the number of the worker
run_id integer
host text: the machine
pid integer: the number of the process
started_at time
seen_at time: its last sign of life
lease_until time: until when it holds its groups
ended_at time: when it ended
ended_code text
ended_by text
pages integer: pages that it committed
requests integer: requests that it counted
groups_held integer: politeness groups that it holds""",
    "mirrors": """\
sites that another site stands for
site text
main_site text
evidence text: host, content or refuted (docs/store.md)
sample integer: content: common paths that were compared
confidence number: content: the least share of equal bodies, with 95 % confidence
leads_to text: host: the end of the chain of Host lines; empty for a circle
contradiction text: refuted: why""",
    "site_files": """\
the last answer for each file of a site beside robots.txt and its pages
site text
url text: the file
purpose text: tdmrep (/.well-known/tdmrep.json), license (RSL) or soft_404 (a path that cannot exist)
fetched_at time
valid_until time: when it is requested again; empty: with robots.txt, or never
status text: the answer, in words
note text: why the file states nothing
moved_to text: the target of a redirect
body bytes: the file; of a path that cannot exist, hashes""",
    "llms_txt": """\
each /llms.txt and /llms-full.txt that was named: the crawler requests none for its own sake
url text
site text
state text: the state of the URL
reason_code text
status integer
content_type text
fetched_at time
body_bytes integer
body_sha256 text
url_id integer""",
    "agent_servers": """\
the Mobile-agent-server lines of the robots.txt in force
site text
path text: the path of the line
agent_server text: the server; empty for none
line integer: the line of robots.txt""",
    "robots_versions": """\
the robots.txt of each site over time
site text
version_sha256 text
fetched_at time: when the first answer with this text was complete
valid_from time
valid_until time
status text: the answer, in words
body bytes: the text
action text
note text
robots_copy integer
confirmed_at time: the last answer with this text""",
    "robots_answers": """\
every answer to a request for robots.txt
site text
fetched_at time
valid_from time
valid_until time
status text: the answer, in words
action text
version_sha256 text
answered_by text: the URL that answered, behind redirects
headers json: the headers that decide how long the answer is valid, as JSON
retry_at time: when robots.txt is requested again
failures integer: failed attempts in a row
failing_since time: the first of these
note text
run_id integer
robots_copy integer""",
    "rup_offers": """\
the contents of /rupinfo.txt files
site text
url text: the address of the file
found_at time: when it was read
cgi text
authentifier text: the e-mail address of its mails
latencies json: latencies that it offers, as JSON
exclude json: patterns that it leaves out, as JSON
include_only json: patterns that it is limited to, as JSON
max_query_span text: the longest span of a query""",
    "rup_servers": """\
the RUP servers at which the crawl is registered
site text
cgi text
email text: the address to which it reports
latency text: the latency that was asked for
exclude json: patterns that it shall leave out
include_only json: patterns that it shall be limited to
registered_at time: when the crawl registered
sequence_number integer: the number of the last report
heard_at time: the last report
known_until time: until when all changes are known
silent_at time: when the server became silent
state_code text: the state, as a code (docs/reasons.md)
state_detail text: what explains the state
reports integer: mails that were taken
ignored integer: mails that were not
changes integer: changes that mails told of
refused integer""",
    "rup_mails": """\
the mails that the RUP robot read
taken_at time: when the mail was read
site text
sequence_number integer: the number of the report
verdict_code text: what became of it, as a code (docs/reasons.md)
verdict text: what became of it, as a sentence
changes integer: changes that it told of
refused integer""",
    "requests": """\
every request
url text
site text
purpose text: robots, page, sitemap, tdmrep, soft_404, license, indexnow or rup
started_at time
finished_at time
status integer
error_kind text: the error, as a code
error text: the error, as a sentence
bytes integer
robots_version text: SHA-256 of the robots.txt that was in force
verdict_line integer: the line of that robots.txt that decided; empty if none matched
retry_after_s number: Retry-After of the answer
run_id integer
robots_copy integer
lag_s number: the lag of the crawler's own event loop during the request
tls_version text
tls_cipher text: the cipher suite
certificate_until time: the end of the certificate; empty if it was not verified
address text
price text: the price or licence that a 402 names; nothing was paid
sent yes: false: there was no address to connect to""",
    "runs": """\
every run with its settings
run_id integer
started_at time
finished_at time
ended_code text
ended_by text
crawler_version text: the version of the crawler
settings json: all settings of the run, as JSON
worst_lag_s number: the longest delay of the crawler's own event loop
pages_before integer: pages in the store when the run began""",
    "orders": """\
the orders of the operator
order_id integer: the sequence of the orders
asked_at time: when the operator gave the order
command text: pause, resume, stop, block or unblock
name text: the host or site that it is about
run_id integer: the run that it is about
done_at time: when a crawl had carried it out
because text: why, in the operator's words""",
    "sample_draws": """\
the draws of samples: at most the last one is not discarded
number integer: the number of the draw, from 1
method text: uniform, stratified or random-walk
per text: crawl: one population; site: each site is a stratum
size integer: the number of URLs to draw, from the crawl or from each site
seed integer: the seed of the keys by which URLs are drawn
drawn_at time: when the frame was closed and the sample drawn
frame_size integer: number of URLs in the frame
cut_sites integer: sites of which a limit on pages kept URLs out of the frame
missed integer: frame error: URLs that were not reached before the frame was closed
missed_sites integer: the sites of these URLs
follows yes: whether the target of a drawn URL's redirect belongs to the sample
held_from integer: the depth whose pages were requested only if drawn; empty: all were requested
stands yes: false: seeds or settings have changed since the draw
share number: of the crawl or of each site, no more than this share of the URLs was drawn, rounded up
sites integer: the number of sites to draw first; empty: URLs of all sites were drawn
sites_by text: equal: sites were drawn with equal probabilities; size: in proportion to their URLs in the frame
design json: the settings that decide which URLs are drawn, and the digest of the list of seeds
design_sha256 text: the digest of the design, which `crawler sample design` prints before the crawl
discarded_at time: when a later draw replaced this one; empty for the draw that gave the sample""",
}

#: Every view but those by number (docs/store.md), with its columns in order.
VIEWS = {view: columns_of(text.splitlines()[1:]) for view, text in _VIEWS.items()}

#: What each of these views has a row for.
ROWS = {view: text.partition("\n")[0] for view, text in _VIEWS.items()}
