"""The table of settings: every key stands here once.

The TOML reader, the options of ``crawler run`` with their help, the mapping that Python takes, ``config/crawler.toml``
and ``docs/settings.md`` are all made from this table. The default of a setting is the default of its field in
:class:`~crawler.settings.settings.Settings`.

To add a setting: add a field with its default, then a :class:`Key` here, then run ``python -m tests.docs``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crawler.errors import Action, Argument, Reference, Setting, has_value, python_name
from crawler.frontier.politeness import GroupBy
from crawler.frontier.sample_design import Method, Per, SitesBy
from crawler.frontier.scope import ScopeMode
from crawler.model import Reading
from crawler.settings.settings import LogFormat, LogLevel, Settings, SignatureForm
from crawler.settings.values import (
    AGENT_URL,
    BODIES,
    CONTACT,
    COUNT_OR_NO_LIMIT,
    DEPTH,
    FACTOR,
    FLAG,
    HEADERS,
    HOURS,
    MORE_THAN_0_SECONDS,
    NETWORKS,
    NOTIFY,
    PROXY,
    PURPOSES,
    REGEXES,
    RESOLVE,
    SAMPLE_SIZE,
    SECONDS,
    SECONDS_OR_NO_LIMIT,
    SHARE,
    SIGNATURE_LIFETIME,
    SITES,
    SIZE_OR_AUTO,
    SIZE_OR_NO_LIMIT,
    STORE,
    STORES,
    TEXT,
    TOKEN,
    TYPES,
    VERIFY,
    ValueKind,
    one_of,
    whole,
)

_DEFAULTS = Settings()
_SUFFIXES = ("", "_s", "_bytes", "_off")  # what a field adds to the word of its key
#: The store has the place of its bodies and its seeds itself. The other keys are about a process or the end of a run.
_OF_ONE_RUN = frozenset(
    {
        "store.db",
        "store.bodies",
        "seeds.file",
        "seeds.skip_bad",
        "output.progress",
        "output.json",
        "output.log_level",
        "output.log_format",
        "output.notify",  # the address of a webhook is a secret
        "limits.max_time",
        "workers.count",
        "workers.parsers",
    }
)


@dataclass(frozen=True, slots=True)
class Key:
    """One setting.

    ``name`` is its key in TOML and Python: the section, a dot, and a word. ``help`` is one sentence, which the command
    line shows as well; ``more`` adds what only the reference says. ``option`` is the option of ``crawler run``, if
    there is one. An option that begins with ``--no-`` turns a flag off, and ``option_help`` then stands in place of
    ``help``.
    """

    name: str
    kind: ValueKind
    help: str
    more: str = ""
    option: str = ""
    option_help: str = ""
    metavar: str = ""

    @property
    def section(self) -> str:
        """The section of the TOML file."""
        return self.name.partition(".")[0]

    @property
    def word(self) -> str:
        """The key within its section."""
        return self.name.partition(".")[2]

    @property
    def field(self) -> str:
        """The field of the section's class in :class:`Settings`: the word, with its unit or with ``_off``."""
        section = getattr(_DEFAULTS, self.section)
        return next(name for suffix in _SUFFIXES if hasattr(section, name := self.word + suffix))

    @property
    def path(self) -> str:
        """The section and the field, as the store records them with each run."""
        return f"{self.section}.{self.field}"

    @property
    def is_remembered(self) -> bool:
        """Whether the store remembers the value for the next run: not if it is about one run or process."""
        return self.name not in _OF_ONE_RUN

    @property
    def default(self) -> Any:
        """The value that :class:`Settings` has by default."""
        return self.value(_DEFAULTS)

    def value(self, settings: Settings) -> Any:
        """The value of this setting in ``settings``."""
        return getattr(getattr(settings, self.section), self.field)


#: The sections of the table, in the order of the reference, and what each is about.
SECTIONS: Mapping[str, str] = {
    "identity": "How the crawler introduces itself to sites.",
    "store": "Where the crawl is kept.",
    "seeds": "Where the crawl starts.",
    "output": "What a command writes beside the store.",
    "scope": "Which URLs belong to the crawl.",
    "limits": "When the crawl stops, and how much it does at once.",
    "discovery": "Sources of URLs other than links.",
    "revisit": "Visiting pages again; docs/revisits.md describes it.",
    "updates": "Updates by the Remote Update Protocol (RUP); docs/updates.md describes them.",
    "traps": "URLs that look like an endless web, such as calendars and session ids.",
    "politeness": "How long the crawler pauses between two requests to one server.",
    "robots": "How the crawler reads and keeps robots.txt.",
    "fetch": "Bounds on one request.",
    "workers": "Several processes on one crawl; docs/scale.md describes them.",
    "sample": "A random sample of the URLs; docs/samples.md describes it.",
}

_TABLE = (
    Key(
        "identity.agent",
        TOKEN,
        "The product token that robots.txt files address this crawler by.",
        'It is also the first word of the User-Agent header. Use letters, "-" and "_" only. Change it when you run a '
        "crawler of your own.",
        "--agent",
    ),
    Key(
        "identity.contact",
        CONTACT,
        "A URL or an e-mail address of the person who runs the crawl, or both; needed outside loopback.",
        "The crawler sends it with every request, and the owner of a site can reach you. With both, User-Agent names "
        "the URL and From the address. Without a contact the crawl stays on loopback.",
        "--contact",
    ),
    Key(
        "identity.signing_key",
        TEXT,
        "Sign every request with the key in this file of `crawler identity new`; docs/identity.md describes it.",
        "The store keeps the path and never the key. A relative path starts at the folder in which the crawler runs.",
        "--signing-key",
        metavar="FILE",
    ),
    Key(
        "identity.signature_agent",
        AGENT_URL,
        "The https URL at which the public keys of the crawler are published.",
        "An origin stands for /.well-known/http-message-signatures-directory there; a URL with a path is the place "
        "itself.",
        "--signature-agent",
    ),
    Key(
        "identity.signature_form",
        one_of(SignatureForm),
        "The form of the header Signature-Agent.",
        '"dictionary" is the form of draft-ietf-webbotauth-httpsig-protocol. "string" is the form of earlier drafts, '
        "which some verifiers still want.",
    ),
    Key(
        "identity.signature_lifetime",
        SIGNATURE_LIFETIME,
        "How long a signature is valid.",
        "A signature covers the host and not the path, so whoever sees a request can repeat its signature to the same "
        "host for this long.",
    ),
    Key(
        "identity.purpose",
        PURPOSES,
        "The use of the pages: search, train-ai, ai-input, archive or research; may be repeated.",
        "If robots.txt refuses one of these (Content-Usage, Content-Signal), the pages concerned are not requested. "
        "A page that refuses one itself is not kept. Without a purpose the preferences are recorded only.",
        "--purpose",
    ),
    Key(
        "identity.operator",
        TEXT,
        "Who runs the crawl, for the page of `crawler identity page`.",
    ),
    Key(
        "identity.about",
        TEXT,
        "Why the crawl is run, for the page of `crawler identity page`.",
    ),
    Key(
        "identity.data_use",
        TEXT,
        "What is done with the data and for how long it is kept, for the page of `crawler identity page`.",
    ),
    Key(
        "identity.addresses",
        NETWORKS,
        "The IP addresses and networks from which the crawler sends, for the file of `crawler identity page`.",
    ),
    Key(
        "store.db",
        STORE,
        "The store: the path of a SQLite file, or postgresql://user@host/name.",
        "The crawler makes a SQLite file that does not exist. A PostgreSQL database serves any number of machines; the "
        "crawler takes its password from PGPASSWORD, PGPASSFILE or ~/.pgpass.",
        "--db",
    ),
    Key(
        "store.parts",
        STORES,
        "The stores of all parts of a crawl on several databases, `store.db` among them; repeat the option.",
        "Each part requests the sites whose registered domains fall to it; docs/scale.md describes it. Each store is "
        "crawled by commands of its own, with the same list. The list is fixed with the first run.",
        "--part",
    ),
    Key(
        "store.bodies",
        BODIES,
        "Keep the bodies of pages outside the database: in a folder, or in S3 at s3://bucket/prefix.",
        "S3 needs the extra `s3`. The store remembers the place, and all commands find the bodies there. Bodies that "
        "are in the database stay there. Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or from the "
        "role of the machine; AWS_ENDPOINT_URL names another server than Amazon's. Workers on several machines need "
        "one folder that all of them see.",
        "--bodies",
    ),
    Key(
        "store.headers",
        HEADERS,
        'The response headers of pages that the store keeps, by name; ["*"] keeps all but Set-Cookie.',
        "Last-Modified and ETag have columns of their own and are always kept.",
    ),
    Key(
        "store.resources",
        FLAG,
        "Keep the hosts of the scripts, images, style sheets and frames that each page names.",
        "The crawler does not request them. The view `resources` lists them with their registered domains.",
    ),
    Key(
        "store.min_free",
        SIZE_OR_AUTO,
        "The crawl pauses while the disk of the SQLite file or of the WARC folder has less free space than this.",
        '"auto" is 1 GB, or a twentieth of a disk smaller than 20 GB; name more on a disk of less than a GB, because '
        "SQLite's log takes up to 33 MB. The crawl goes on by itself when the disk has a tenth more. Requests in "
        "flight still use the reserve. A PostgreSQL server's disk is not watched.",
        "--min-free",
        "Pause while the disk has less free space; 0 is off.  [default: 1GB, or 5% of a smaller disk]",
    ),
    Key(
        "seeds.file",
        TEXT,
        'A file of seeds with one URL a line; "#" starts a comment, and "-" is standard input.',
        "A relative path starts at the folder in which the crawler runs. For a stratified sample the file is CSV with "
        "the columns url,stratum or rank,domain. The addresses of a domain are tried in turn.",
        "--seeds",
        metavar="FILE|-",
    ),
    Key(
        "seeds.skip_bad",
        FLAG,
        "Skip lines that are no URLs, with a warning for each, instead of refusing to start.",
        option="--skip-bad-seeds",
    ),
    Key(
        "output.progress",
        FLAG,
        "Show a live display if standard output is a terminal.",
        option="--no-progress",
        option_help="Show no live display.",
    ),
    Key(
        "output.json",
        FLAG,
        "Print the summary at the end as one JSON document.",
        option="--json",
    ),
    Key(
        "output.warc",
        TEXT,
        "Record every request and every answer in WARC files in this folder.",
        "The files hold the bytes that went over the wire. The crawler writes them while it crawls.",
        "--warc",
        metavar="DIR",
    ),
    Key(
        "output.log_level",
        one_of(LogLevel),
        "Write log records of this severity and above to standard error.",
        "A program that uses the Python API sets up logging itself: the loggers are below `crawler`.",
        "--log-level",
    ),
    Key(
        "output.log_format",
        one_of(LogFormat),
        "Write log records as lines of text, or as one JSON object a line.",
        option="--log-format",
    ),
    Key(
        "output.notify",
        NOTIFY,
        "Send the summary of a run to this webhook, or by mail: https://HOST/… or smtp://SERVER/you@example.org.",
        "A webhook gets the JSON of --json by POST, with the sentence `text`. A mail comes from the address in "
        "identity.contact, if there is one. With smtps:// the connection begins with TLS. The environment variables "
        "CRAWLER_SMTP_USER and CRAWLER_SMTP_PASSWORD are the login, if the mail server requires one.",
        "--notify",
    ),
    Key(
        "scope.mode",
        one_of(ScopeMode),
        "How far the crawl goes from its seeds.",
        '"host" takes the hosts of the seeds, "domain" their registrable domains (example.co.uk and everything below '
        'it), "prefix" what is below the directory of a seed, and "any" every site that links lead to.',
        "--scope",
    ),
    Key(
        "scope.include",
        REGEXES,
        "Take only URLs in which one of these regular expressions matches.",
        "Seeds are exempt. An empty list takes every URL.",
        "--include",
    ),
    Key(
        "scope.exclude",
        REGEXES,
        "Leave out URLs in which one of these regular expressions matches.",
        "This holds for seeds too.",
        "--exclude",
    ),
    Key(
        "limits.max_pages",
        COUNT_OR_NO_LIMIT,
        "Stop when the store holds this many pages; 0 is no limit.",
        "Pages of earlier runs count.",
        "--max-pages",
    ),
    Key(
        "limits.max_pages_per_site",
        COUNT_OR_NO_LIMIT,
        "Take at most this many pages of each site; 0 is no limit.",
        "A site is a scheme, a host and a port. Set this limit if sites may be endless: calendars, shops, session ids.",
        "--max-pages-per-site",
    ),
    Key(
        "limits.max_depth",
        DEPTH,
        "Follow at most this many links from a seed; -1 is no limit.",
        "A seed has depth 0.",
        "--max-depth",
    ),
    Key(
        "limits.max_time",
        SECONDS_OR_NO_LIMIT,
        "End the run after this time; 0 is no limit.",
        "The next run continues the crawl.",
        "--max-time",
    ),
    Key(
        "limits.max_disk",
        SIZE_OR_NO_LIMIT,
        "End the run when the files of the crawl take more than this; 0 is no limit.",
        "The SQLite file with its write-ahead log, the folder of bodies and the WARC folder count. They grow a little "
        "beyond it: requests in flight are still stored. A PostgreSQL database and S3 do not count.",
        "--max-disk",
    ),
    Key(
        "limits.concurrency",
        whole(1),
        "Requests in flight over all sites together.",
        "One site gets one request at a time in any case, and one registered domain a quarter of them at most, at the "
        "pace of that many hosts. Raise the number for a crawl of thousands of sites, if memory and bandwidth allow.",
        "--concurrency",
    ),
    Key(
        "discovery.sitemaps",
        FLAG,
        "Ask each site for its sitemaps, and queue the URLs that they list.",
        "The sitemaps are those that robots.txt names, or else /sitemap.xml. This finds pages that no link leads to. "
        "Scope, robots.txt and pace hold for the listed URLs as for any other. With revisits, the crawler also reads "
        "the RSS and Atom feeds that pages name, and the dates in all of these tell it what has changed.",
    ),
    Key(
        "revisit.enabled",
        FLAG,
        "Visit pages again when they are due, as well as going on with the crawl.",
        "The run ends when no page is due any more. Start it as often as you like, for instance from cron.",
        "--revisit",
    ),
    Key(
        "revisit.first",
        MORE_THAN_0_SECONDS,
        "The time until the second visit of a page about which nothing else is known.",
        "A page that calls its state DYNAMIC is due after a seventh of this time, and a page that calls it STATIC "
        "after four times as long. After that, the changes of the page itself decide.",
    ),
    Key(
        "revisit.min_interval",
        MORE_THAN_0_SECONDS,
        "The least time between two visits of a page, whatever the page or a sitemap says.",
    ),
    Key(
        "revisit.max_interval",
        MORE_THAN_0_SECONDS,
        "The longest time after which a page is due again.",
    ),
    Key(
        "revisit.per_day",
        COUNT_OR_NO_LIMIT,
        "The most revisits in a day over all sites; 0 is no limit.",
        "The pages that are most likely to have changed go first. The budget is restored evenly: an hour gives back a "
        "24th of it.",
    ),
    Key(
        "revisit.per_site",
        COUNT_OR_NO_LIMIT,
        "The most revisits of one site in a day; 0 is no limit.",
    ),
    Key(
        "updates.rup",
        FLAG,
        "Ask each site once for /rupinfo.txt, to learn whether it offers updates by RUP.",
        "`crawler rup info SITE` and the view rup_offers show the answer.",
    ),
    Key(
        "updates.cgi_elsewhere",
        FLAG,
        "Talk to a RUP server on another site than the /rupinfo.txt that names it.",
        "Such a file can name the server of any third party.",
    ),
    Key(
        "traps.enabled",
        FLAG,
        "Leave out URLs that look like traps.",
        "Traps are: a URL of more than 2,048 characters; a path of more than 20 segments, or with the same segments "
        "three times in a row; a query of more than 1,024 characters or 30 parameters, with more than 12 of one name, "
        "or with the same parameter three times; a session id; a calendar before 1990 or more than 3 years ahead. Turn "
        "this off for sites whose real pages look like traps. `crawler why URL` names the rule that left a URL out.",
    ),
    Key(
        "politeness.delay",
        SECONDS,
        "The least pause between the end of an answer and the next request to the same host.",
        "Raise it for small servers. Lower it only for servers that are yours.",
        "--delay",
    ),
    Key(
        "politeness.slow_factor",
        FACTOR,
        "Pause at least this many times as long as the last answer took.",
        "A server under load gets more time in this way.",
    ),
    Key(
        "politeness.slow_cap",
        SECONDS,
        "The longest pause that slow answers can lead to.",
        "If answers take at least twice as long as usual, pauses are as many times as long. A Crawl-delay is kept in "
        "full.",
    ),
    Key(
        "politeness.crawl_delay_cap",
        SECONDS_OR_NO_LIMIT,
        "Cut a longer Crawl-delay of robots.txt to this time; 0 cuts none.",
        "Cut it only if the owner of the site agrees.",
    ),
    Key(
        "politeness.backoff_first",
        MORE_THAN_0_SECONDS,
        "The pause of a server after a first 429, 503, timeout or refused connection.",
        "Each further one doubles the pause, and each success halves it. The crawler also keeps Retry-After in full.",
    ),
    Key(
        "politeness.backoff_max",
        MORE_THAN_0_SECONDS,
        "The longest that the pause of backoff_first grows to.",
    ),
    Key(
        "politeness.group",
        one_of(GroupBy),
        "What counts as one server.",
        'Choose "domain" if many hosts of a registrable domain are likely to be one machine.',
    ),
    Key(
        "politeness.per_address",
        whole(1),
        "Requests in flight to one IP address, whatever the names of its hosts; of IPv6, to one /64.",
        "If more than 4 hosts share an address, the starts of requests to it are also `politeness.delay` apart. "
        "Loopback, and addresses given by `fetch.resolve`, have no limit. Each worker process counts for itself.",
    ),
    Key(
        "politeness.hours",
        HOURS,
        "The hours of the day in which hosts may be asked, such as '22-06 Europe/Berlin'.",
        "The hours are by the clock of the named time zone; the crawler cannot tell the zone of a site. "
        "'*.de=22-06 Europe/Berlin' is for the hosts below de; of several, the first that fits a host counts. A host "
        "that none fits may be asked at all hours.",
    ),
    Key(
        "politeness.large_hosts",
        NETWORKS,
        "IP addresses and networks without the limits of addresses and of registered domains with many hosts.",
        "List the addresses of a hoster or a content delivery network if you crawl many of its customers, and know "
        "that its servers can bear it.",
    ),
    Key(
        "robots.reading",
        one_of(Reading),
        "How robots.txt is read.",
        '"draft1996": the first matching line decides. "rfc9309": the longest matching line decides. "strict": a URL '
        "is fetched only if both of these allow it, and if no line clearly meant to close it.",
        "--reading",
    ),
    Key(
        "robots.tdmrep",
        FLAG,
        "Ask each site for /.well-known/tdmrep.json after its robots.txt, and record what it says about text and data "
        "mining.",
        "It costs a request for each site and each robots.txt. Headers and tags of a page count before it.",
        "--tdmrep",
    ),
    Key(
        "robots.stale_if_error",
        FLAG,
        "While a site's robots.txt cannot be fetched, obey an earlier copy instead of leaving the site alone.",
    ),
    Key(
        "robots.give_up_after",
        SECONDS,
        "Give a site up if its robots.txt could not be fetched for this long.",
        option="--give-up-after",
    ),
    Key(
        "robots.unknown_host_after",
        SECONDS,
        "Give a site up if the name servers said for this long that its name does not exist.",
        "A name that was registered a moment ago may be unknown to some name servers for minutes.",
    ),
    Key(
        "robots.min_fresh",
        SECONDS,
        "Keep a copy of robots.txt for at least this long, whatever its headers say.",
        'A robots.txt with "no-cache" would otherwise double the load of its site.',
    ),
    Key(
        "robots.retry_first",
        MORE_THAN_0_SECONDS,
        "The pause after a first failure to fetch robots.txt.",
        "Each further failure doubles it.",
    ),
    Key(
        "robots.retry_max",
        MORE_THAN_0_SECONDS,
        "The longest that the pause of retry_first grows to.",
    ),
    Key(
        "fetch.types",
        TYPES,
        "Content types to read; any other type is excluded.",
        "The crawler decides by the headers, before it reads the body. `html`, `pdf` and `text` are short names; "
        "several may stand in one text, as `html,pdf`. A page without a type counts as HTML. Links are followed from "
        "HTML only. Of a PDF file the title and the first 200 pages are read; that needs the extra `documents`.",
        "--types",
    ),
    Key(
        "fetch.max_body_bytes",
        whole(1),
        "The largest body to take, in bytes, as sent and as decoded; a larger one fails.",
        "Raise it for sites with very long pages.",
    ),
    Key(
        "fetch.max_redirects",
        whole(0),
        "Redirects to follow in a row.",
        "Each hop is a request of its own, and scope, robots.txt and pace hold for it.",
    ),
    Key(
        "fetch.retries",
        whole(0),
        "How often a request is retried after a temporary failure.",
        "Temporary are 5xx, 408, 425, 429, a timeout and a broken connection.",
    ),
    Key(
        "fetch.retry_pause",
        SECONDS,
        "The pause of a URL before its first retry.",
        "Each further pause is three times as long.",
    ),
    Key(
        "fetch.connect_timeout",
        MORE_THAN_0_SECONDS,
        "The time to connect to one address, TLS included.",
    ),
    Key(
        "fetch.read_timeout",
        MORE_THAN_0_SECONDS,
        "The longest silence before an answer and between its bytes.",
    ),
    Key(
        "fetch.total_timeout",
        MORE_THAN_0_SECONDS,
        "The time for a whole request, from connecting to the last byte. A look-up of the name may take as long.",
    ),
    Key(
        "fetch.resolve",
        RESOLVE,
        "Fix the address of a name, such as '*.test=127.0.0.1'; may be repeated.",
        'A pattern is a host name, "*.test" for all names below test, or "*". This is meant for test servers. A '
        "private address needs `--allow-private`, too.",
        "--resolve",
    ),
    Key(
        "fetch.proxy",
        PROXY,
        "Send all requests through this HTTP proxy.",
        "The proxy looks names up and connects, so only the proxy can keep the crawler from private addresses. The "
        "crawler refuses only addresses and loopback names that stand in a URL. A user name and password are not "
        "supported. The variables HTTP_PROXY, HTTPS_PROXY and ALL_PROXY are ignored.",
        "--proxy",
    ),
    Key(
        "fetch.ca_file",
        TEXT,
        "A PEM file of certificate authorities that count beside those of the system.",
        "It is for sites whose certificates a private authority has issued.",
    ),
    Key(
        "fetch.verify",
        VERIFY,
        "Hosts whose certificates are not verified, such as 'intranet.example=off'.",
        'A pattern is a host name, "*.test" for all names below test, or "*". Anyone on the way can then '
        "change what such a host sends, its robots.txt included. The audit and the report warn of it. Name the "
        "authority of the host with `fetch.ca_file` where you can.",
    ),
    Key(
        "fetch.allow_private",
        FLAG,
        "Permit loopback, private and other special addresses.",
        "A page might otherwise lure the crawler to them. Use it for a crawl of your own network.",
        "--allow-private",
    ),
    Key(
        "workers.count",
        whole(1),
        "Processes on this machine that share the crawl.",
        "They work on one SQLite file or one PostgreSQL database.",
        "--workers",
    ),
    Key(
        "workers.parsers",
        whole(0),
        "Processes in which each worker reads pages; 0: as many as suit the machine.",
        "The default, 0, is one less than the processors, at least 1 and at most 4, shared among the workers. Each "
        "process takes some 40 MB.",
        "--parsers",
    ),
    Key(
        "workers.lease_margin",
        MORE_THAN_0_SECONDS,
        "The time, beyond fetch.total_timeout, after which the sites of a silent worker pass to other workers.",
        "A worker that is cut off from the store stops sending before that time. A worker that died keeps its sites "
        "from the others for this long at most.",
    ),
    Key(
        "workers.patience",
        SECONDS,
        "How long a crawl waits for a PostgreSQL database that cannot be reached.",
        "After that time the run ends with exit code 4. Meanwhile the crawler asks sites only as long as its lease "
        "lasts.",
    ),
    Key(
        "sample.size",
        SAMPLE_SIZE,
        "Draw this many URLs as a random sample, and estimate from them what the rest is like.",
        "Bound the crawl by limits.max_depth: a page at that depth is then fetched only if it is drawn.",
        "--sample",
    ),
    Key(
        "sample.per",
        one_of(Per),
        "Draw that number from the whole crawl, or from each site.",
        option="--per",
    ),
    Key(
        "sample.share",
        SHARE,
        "Draw no more than this share of the URLs of the crawl, or of each site.",
        "A part of a URL counts as one. 0.05 is one URL of twenty.",
        "--sample-share",
    ),
    Key(
        "sample.sites",
        SITES,
        "Draw this many of the sites first, and then URLs of these sites alone.",
        'Needs sample.per = "site". All sites are in the sampling frame, so their nearer pages are requested.',
        "--sample-sites",
    ),
    Key(
        "sample.sites_by",
        one_of(SitesBy),
        "The probability with which each site is drawn.",
        '"equal": the same for all. "size": in proportion to the number of its URLs in the sampling frame.',
        "--sample-sites-by",
    ),
    Key(
        "sample.method",
        one_of(Method),
        "How the sample is drawn.",
        '"uniform": every URL is equally likely. "random-walk": the URLs that random walks along links come by. '
        '"stratified": seeds of a list, the same number from each stratum; nothing else is fetched.',
        "--method",
    ),
    Key(
        "sample.seed",
        whole(0),
        "The seed of the random draw; the same seed draws the same sample of the same web.",
        option="--seed",
    ),
    Key(
        "sample.frame_patience",
        MORE_THAN_0_SECONDS,
        "Draw the sample when no page has been answered for so long, if sites that fail hold it up.",
        "What was not reached by then is not in the sampling frame; the estimates state how much.",
    ),
)

#: Every key by its name, in the order of the reference.
KEYS: Mapping[str, Key] = {key.name: key for key in _TABLE}


def terminal_name(reference: Reference) -> str:
    """The name of ``reference`` on the command line: ``--max-pages 5``, ``--base-url x``, or a command.

    A setting without an option has the name that a TOML file gives it.
    """
    match reference:
        case Action(command=command):
            return f"`{command}`"
        case Setting(key, value) if KEYS[key].option:
            name = KEYS[key].option
        case Setting():
            return python_name(reference)
        case Argument(name, value):
            name = "--" + name.replace("_", "-")
    return f"{name} {str(value)[:100]}" if has_value(value) else name
