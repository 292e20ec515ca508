"""All settings of a crawl, as one frozen object with their defaults."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from crawler.engine.crawl_settings import KEPT_HEADERS, DiscoverySettings, HookSettings, LimitSettings, UpdateSettings
from crawler.fields.declaration import Of, section, setting
from crawler.fields.kinds import (
    FLAG,
    NETWORKS,
    SECONDS,
    SIZE_OR_AUTO,
    TEXT,
    one_of,
    whole,
)
from crawler.frontier.politeness import PolitenessSettings
from crawler.frontier.request_settings import RequestSettings
from crawler.frontier.revisit import RevisitSettings
from crawler.frontier.sample_design import SampleSettings
from crawler.frontier.scope import ScopeSettings
from crawler.frontier.traps import TrapSettings
from crawler.preferences.purposes import UsePurpose
from crawler.reasons import FRAME_CODES, ReasonCode
from crawler.robots.response import RobotsSettings
from crawler.settings.log_records import LogFormat, LogLevel
from crawler.settings.values import (
    ABSOLUTE_FILE,
    AGENT_URL,
    BODIES,
    CONTACT,
    HEADERS,
    NOTIFY,
    PURPOSES,
    STORE,
    TOKEN,
)

_MIRRORS = (ReasonCode.MIRROR, ReasonCode.MIRROR_CYCLE)


class SignatureForm(StrEnum):
    """The form of the header ``Signature-Agent`` (draft-ietf-webbotauth-httpsig-protocol)."""

    DICTIONARY = "dictionary"
    STRING = "string"


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of the crawler and of its operator.

    ``agent`` is the product token that the crawler looks for in robots.txt files. Requests are signed if
    ``signing_key`` names a key file; ``signature_agent`` is then the URL at which the keys are published. ``purpose``
    lists the declared uses of the pages. ``operator``, ``about``, ``data_use`` and ``addresses`` stand on the page
    about the crawler.
    """

    agent: str = setting(
        "agent",
        "PoliteCrawler",
        TOKEN,
        "The product token that robots.txt files address this crawler by.",
        'It is also the first word of the User-Agent header. Use letters, "-" and "_" only. Change it when you run '
        "a crawler of your own.",
        option="--agent",
        option_help="The token for robots.txt.",
        decides=(
            ReasonCode.ROBOTS,
            ReasonCode.PREFERENCE,
            ReasonCode.ROBOTS_GIVEN_UP,
            ReasonCode.MIRROR,
            ReasonCode.MIRROR_CYCLE,
            *FRAME_CODES,
        ),
    )
    contact: str = setting(
        "contact",
        "",
        CONTACT,
        "A URL or an e-mail address of the person who runs the crawl, or both; needed outside loopback.",
        "The crawler sends it with every request, and the owner of a site can reach you. With both, User-Agent "
        "names the URL and From the address. Without a contact the crawl stays on loopback.",
        option="--contact",
        option_help="Your URL or e-mail; needed outside loopback.",
        decides=(ReasonCode.SCOPE, ReasonCode.PATTERN, ReasonCode.CONTACT, ReasonCode.ADDRESS, *FRAME_CODES),
    )
    signing_key: str = setting(
        "signing_key",
        "",
        TEXT,
        "Sign every request with the key in this file of `crawler identity new`; docs/identity.md describes it.",
        "The store keeps the path and never the key. A relative path starts at the folder in which the crawler runs.",
        of=Of.WORKER,
    )
    signature_agent: str = setting(
        "signature_agent",
        "",
        AGENT_URL,
        "The https URL at which the public keys of the crawler are published.",
        "An origin stands for /.well-known/http-message-signatures-directory there; a URL with a path is the place "
        "itself.",
    )
    signature_form: SignatureForm = setting(
        "signature_form",
        SignatureForm.DICTIONARY,
        one_of(SignatureForm),
        "The form of the header Signature-Agent.",
        '"dictionary" is the form of draft-ietf-webbotauth-httpsig-protocol. "string" is the form of earlier '
        "drafts, which some verifiers still want.",
    )
    signature_lifetime_s: float = 60.0  # whoever sees a signature can repeat it to the same host for this long
    purpose: tuple[UsePurpose, ...] = setting(
        "purpose",
        (),
        PURPOSES,
        "The use of the pages: search, train-ai, ai-input, archive or research; may be repeated.",
        "If robots.txt refuses one of these (Content-Usage, Content-Signal), the pages concerned are not "
        "requested. A page that refuses one itself is not kept. Without a purpose the preferences are recorded "
        "only.",
        option="--purpose",
        decides=(ReasonCode.PREFERENCE,),
    )
    operator: str = setting(
        "operator",
        "",
        TEXT,
        "Who runs the crawl, for the page of `crawler identity page`.",
    )
    about: str = setting(
        "about",
        "",
        TEXT,
        "Why the crawl is run, for the page of `crawler identity page`.",
    )
    data_use: str = setting(
        "data_use",
        "",
        TEXT,
        "What is done with the data and for how long it is kept, for the page of `crawler identity page`.",
    )
    addresses: tuple[str, ...] = setting(
        "addresses",
        (),
        NETWORKS,
        "The IP addresses and networks from which the crawler sends, for the file of `crawler identity page`.",
    )

    @property
    def contact_url(self) -> str:
        """The URL among the contacts; "" if there is none."""
        return next((contact for contact in self.contact.split() if "://" in contact), "")

    @property
    def contact_email(self) -> str:
        """The e-mail address among the contacts; "" if there is none."""
        return next((contact for contact in self.contact.split() if "://" not in contact), "")

    def user_agent(self, version: str) -> str:
        """The ``User-Agent`` header: product token, version, and the contact, a URL before an e-mail address."""
        email = f"mailto:{self.contact_email}" if self.contact_email else ""
        whom = self.contact_url or email
        return f"{self.agent}/{version}" + (f" (+{whom})" if whom else "")


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """The place of the crawl, and the facts of pages that it keeps beside their bodies."""

    db: str = setting(
        "db",
        "crawl.db",
        STORE,
        "The store: the path of a SQLite file, or postgresql://user@host/name.",
        "The crawler makes a SQLite file that does not exist. A PostgreSQL database serves any number of machines; "
        "the crawler takes its password from PGPASSWORD, PGPASSFILE or ~/.pgpass.",
        option="--db",
        option_help="The store: a SQLite file or a PostgreSQL URL.",
        of=Of.RUN,
    )
    bodies: str = setting(
        "bodies",
        "",
        BODIES,
        "Keep the bodies of pages outside the database: in a folder, or in S3 at s3://bucket/prefix.",
        "S3 needs the extra `s3`. The store remembers the place, and all commands find the bodies there. Bodies "
        "that are in the database stay there. Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or "
        "from the role of the machine; AWS_ENDPOINT_URL names another server than Amazon's. Workers on several "
        "machines need one folder that all of them see.",
        option="--bodies",
        of=Of.RUN,
    )
    headers: tuple[str, ...] = setting(
        "headers",
        KEPT_HEADERS,
        HEADERS,
        'The response headers of pages that the store keeps, by name; ["*"] keeps all but Set-Cookie.',
        "Last-Modified and ETag have columns of their own and are always kept.",
    )
    resources: bool = setting(
        "resources",
        False,
        FLAG,
        "Keep the hosts of the scripts, images, style sheets and frames that each page names.",
        "The crawler does not request them. The view `resources` lists them with their registered domains.",
    )
    min_free_bytes: int | None = setting(
        "min_free",
        None,
        SIZE_OR_AUTO,
        "The crawl pauses while the disk of the SQLite file or of the WARC folder has less free space than this.",
        '"auto" is 1 GB, or a twentieth of a disk smaller than 20 GB; name more on a disk of less than a GB, '
        "because SQLite's log takes up to 33 MB. The crawl goes on by itself when the disk has a tenth more. "
        "Requests in flight still use the reserve. A PostgreSQL server's disk is not watched.",
        option="--min-free",
        option_help="Pause while the disk has less free space; 0 is off.  [default: 1GB, or 5% of a smaller disk]",
        of=Of.WORKER,
    )


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """The place of the search index."""

    file: str = setting(
        "file",
        "",
        ABSOLUTE_FILE,
        "The file of the search index, by its absolute path.",
        "Without it the index of `crawl.db` is `crawl.db.search` beside it, and that of a PostgreSQL database is "
        "`crawler/HOST-NAME.search` in `$XDG_STATE_HOME`, or in `~/.local/state`. The store remembers the path with "
        "each run, and all commands find the file there. An index at the earlier place is not moved.",
    )


@dataclass(frozen=True, slots=True)
class SeedSettings:
    """The source of the seeds."""

    file: str = setting(
        "file",
        "",
        TEXT,
        'A file of seeds with one URL a line; "#" starts a comment, and "-" is standard input.',
        "A relative path starts at the folder in which the crawler runs. For a stratified sample the file is CSV "
        "with the columns url,stratum or rank,domain. The addresses of a domain are tried in turn.",
        option="--seeds",
        option_help="A file of seeds, one a line; - is stdin.",
        metavar="FILE|-",
        of=Of.RUN,
    )
    skip_bad: bool = setting(
        "skip_bad",
        False,
        FLAG,
        "Skip lines that are no URLs, with a warning for each, instead of refusing to start.",
        option="--skip-bad-seeds",
        option_help="Skip bad lines instead of refusing to start.",
        of=Of.RUN,
    )


@dataclass(frozen=True, slots=True)
class OutputSettings:
    """The output of a command beside the store."""

    progress: bool = setting(
        "progress",
        True,
        FLAG,
        "Show a live display if standard output is a terminal.",
        option="--no-progress",
        option_help="Show no live display.",
        of=Of.RUN,
    )
    quiet: bool = setting(
        "quiet",
        False,
        FLAG,
        "Print nothing, unless the run fails or crawls nothing (exit codes 1, 2, 4 and 5).",
        "For cron, which mails what a command prints.",
        option="--quiet",
        option_help="Print only what went wrong.",
        of=Of.RUN,
    )
    json: bool = setting(
        "json",
        False,
        FLAG,
        "Print the summary at the end as one JSON document.",
        option="--json",
        option_help="Print the summary as one JSON document.",
        of=Of.RUN,
    )
    warc: str = setting(
        "warc",
        "",
        TEXT,
        "Record every request and every answer in WARC files in this folder.",
        "The files hold the bytes that went over the wire. The crawler writes them while it crawls.",
        option="--warc",
        option_help="Record requests and answers as WARC files.",
        metavar="DIR",
        of=Of.WORKER,
    )
    log_level: LogLevel = setting(
        "log_level",
        LogLevel.OFF,
        one_of(LogLevel),
        "Write log records of this severity and above to standard error.",
        "A program that uses the Python API sets up logging itself: the loggers are below `crawler`.",
        option="--log-level",
        of=Of.RUN,
    )
    log_format: LogFormat = setting(
        "log_format",
        LogFormat.TEXT,
        one_of(LogFormat),
        "Write log records as lines of text, or as one JSON object a line.",
        option="--log-format",
        of=Of.RUN,
    )
    notify: str = setting(
        "notify",
        "",
        NOTIFY,
        "Send the summary of a run to this webhook, or by mail: https://HOST/… or smtp://SERVER/you@example.org.",
        "A webhook gets the JSON of --json by POST, with the sentence `text`. A mail comes from the address in "
        "identity.contact, if there is one. With smtps:// the connection begins with TLS. The environment "
        "variables CRAWLER_SMTP_USER and CRAWLER_SMTP_PASSWORD are the login, if the mail server requires one.",
        option="--notify",
        of=Of.RUN,
    )


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Several processes on one crawl.

    ``patience_s`` is how long a worker waits for a database that cannot be reached. ``parsers`` is the number
    of processes in which each worker reads pages; 0 stands for the number that suits the machine.
    """

    count: int = setting(
        "count",
        1,
        whole(1),
        "Processes on this machine that share the crawl.",
        "They work on one SQLite file or one PostgreSQL database.",
        option="--workers",
        option_help="Processes that share the crawl.",
        of=Of.RUN,
    )
    parsers: int = setting(
        "parsers",
        0,
        whole(0),
        "Processes in which each worker reads pages; 0: as many as suit the machine.",
        "The default, 0, is one less than the processors, at least 1 and at most 4, shared among the workers. Each "
        "process takes some 40 MB.",
        of=Of.RUN,
    )
    patience_s: float = setting(
        "patience",
        120.0,
        SECONDS,
        "How long a crawl waits for a PostgreSQL database that cannot be reached.",
        "After that time the run ends with exit code 4. Meanwhile the crawler asks sites only as long as its lease "
        "lasts.",
    )


class RunnerName(StrEnum):
    """What runs the tasks of a round."""

    PROCESSES = "processes"
    SPARK = "spark"


@dataclass(frozen=True, slots=True)
class RoundSettings:
    """The rounds of a dataset: how many ``buckets`` it has, and how long a round is at most."""

    buckets: int = setting(
        "buckets",
        4096,
        whole(1),
        "Stores into which `crawler rounds` divides a crawl by registered domain.",
        "The number is fixed when the dataset is made. A store has one writer at a time, so it bounds how many "
        "processes can work.",
    )
    length_s: float = setting(
        "length",
        3600.0,
        SECONDS,
        "How long a round lasts at most.",
        "URLs on other domains are handed over between rounds. A round with little to do ends sooner.",
    )
    at_once: int = setting(
        "at_once",
        64,
        whole(1),
        "Buckets that one process crawls at the same time.",
        "They share connections and parsers. `limits.concurrency` is divided among the buckets that all processes of a "
        "machine crawl at the same time.",
    )
    runner: RunnerName = setting(
        "runner",
        RunnerName.PROCESSES,
        one_of(RunnerName),
        "What runs the tasks of a round: processes of this machine, or Apache Spark.",
        "`workers.count` is the number of processes. Spark needs the extra `spark`, and is configured by spark-submit.",
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a crawl: each section of the TOML file is a field, and each of its keys a field of that.

    A duration has the suffix ``_s``, and a size ``_bytes``. Each field of a section states its key
    (:func:`crawler.fields.declaration.setting`).
    """

    identity: Identity = section(Identity, "How the crawler introduces itself to sites.")
    store: StoreSettings = section(StoreSettings, "Where the crawl is kept.")
    search: SearchSettings = section(SearchSettings, "Where the search index is kept; docs/search.md describes it.")
    seeds: SeedSettings = section(SeedSettings, "Where the crawl starts.")
    output: OutputSettings = section(OutputSettings, "What a command writes beside the store.")
    scope: ScopeSettings = section(
        ScopeSettings,
        "Which URLs belong to the crawl.",
        (ReasonCode.SCOPE, ReasonCode.PATTERN, ReasonCode.DEPTH, *_MIRRORS, *FRAME_CODES),
    )
    limits: LimitSettings = section(LimitSettings, "When the crawl stops, and how much it does at once.")
    discovery: DiscoverySettings = section(DiscoverySettings, "Sources of URLs other than links.")
    revisit: RevisitSettings = section(RevisitSettings, "Visiting pages again; docs/revisits.md describes it.")
    updates: UpdateSettings = section(
        UpdateSettings, "Updates by the Remote Update Protocol (RUP); docs/updates.md describes them."
    )
    traps: TrapSettings = section(
        TrapSettings,
        "URLs that look like an endless web, such as calendars and session ids.",
        (ReasonCode.TRAP, *FRAME_CODES),
    )
    politeness: PolitenessSettings = section(
        PolitenessSettings, "How long the crawler pauses between two requests to one server."
    )
    robots: RobotsSettings = section(
        RobotsSettings,
        "How the crawler reads and keeps robots.txt.",
        (ReasonCode.ROBOTS, ReasonCode.PREFERENCE, ReasonCode.ROBOTS_GIVEN_UP, *_MIRRORS, *FRAME_CODES),
    )
    fetch: RequestSettings = section(RequestSettings, "Bounds on one request.")
    hooks: HookSettings = section(HookSettings, "Functions of yours that choose links and pages.")
    workers: WorkerSettings = section(WorkerSettings, "Several processes on one crawl; docs/scale.md describes them.")
    rounds: RoundSettings = section(
        RoundSettings, "A crawl of many buckets over a dataset; docs/scale.md describes it."
    )
    sample: SampleSettings = section(
        SampleSettings, "A random sample of the URLs; docs/samples.md describes it.", FRAME_CODES
    )

    @property
    def compares_soft_404s(self) -> bool:
        """Whether pages are compared with the answer of their site to a path that cannot exist."""
        return self.discovery.soft_404 or self.sample.size is not None

    @property
    def requests_before_pages(self) -> int:
        """The requests to a site for its robots.txt, and for its other files if the settings ask for them."""
        return 1 + self.discovery.sitemaps + self.robots.tdmrep + self.compares_soft_404s + self.updates.rup

    @property
    def lease_s(self) -> float:
        """How long a worker's lease lasts, in seconds: for the longest request, and a quarter of that or a second more.

        If a worker has no contact with the store for so long, its sites pass to other workers.
        """
        return self.fetch.total_timeout_s + max(1.0, self.fetch.total_timeout_s / 4)
