"""All settings of a crawl, as one frozen object with their defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from crawler.engine.crawl_settings import KEPT_HEADERS, DiscoverySettings, LimitSettings, UpdateSettings
from crawler.frontier.politeness import PolitenessSettings
from crawler.frontier.request_settings import RequestSettings
from crawler.frontier.revisit import RevisitSettings
from crawler.frontier.sample_design import SampleSettings
from crawler.frontier.scope import ScopeSettings
from crawler.frontier.traps import TrapSettings
from crawler.preferences.purposes import UsePurpose
from crawler.robots.response import RobotsSettings


class LogLevel(StrEnum):
    """The least severe records that a command writes to standard error."""

    OFF = "off"
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    DEBUG = "debug"


class LogFormat(StrEnum):
    """How a command writes log records."""

    TEXT = "text"
    JSON = "json"


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

    agent: str = "PoliteCrawler"
    contact: str = ""  # a URL, an e-mail address, or both with a blank between
    signing_key: str = ""  # the path of a key file
    signature_agent: str = ""
    signature_form: SignatureForm = SignatureForm.DICTIONARY
    signature_lifetime_s: float = 60.0
    purpose: tuple[UsePurpose, ...] = ()
    operator: str = ""
    about: str = ""
    data_use: str = ""
    addresses: tuple[str, ...] = ()

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

    db: str = "crawl.db"
    parts: tuple[str, ...] = ()  # the stores of all parts of the crawl; empty: the store has the whole crawl
    bodies: str = ""  # a folder or s3://bucket/prefix; "": the database, or the place that the store remembers
    headers: tuple[str, ...] = KEPT_HEADERS  # names of response headers that the store keeps of pages; "*": all
    resources: bool = False  # store the hosts of the scripts, images, styles and frames of pages
    min_free_bytes: int | None = None  # None stands for crawler.engine.disk_reserve.DEFAULT_BYTES


@dataclass(frozen=True, slots=True)
class SeedSettings:
    """The source of the seeds."""

    file: str = ""
    skip_bad: bool = False


@dataclass(frozen=True, slots=True)
class OutputSettings:
    """The output of a command beside the store."""

    progress: bool = True
    json: bool = False
    warc: str = ""  # a folder
    notify: str = ""  # the URL of a webhook, or smtp[s]://SERVER[:PORT]/ADDRESS
    log_level: LogLevel = LogLevel.OFF
    log_format: LogFormat = LogFormat.TEXT


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Several processes on one crawl.

    If a worker has no contact with the store for the longest request plus ``lease_margin_s``, its sites pass to other
    workers. ``patience_s`` is how long a worker waits for a database that cannot be reached. ``parsers`` is the number
    of processes in which each worker reads pages; 0 stands for the number that suits the machine.
    """

    count: int = 1
    parsers: int = 0
    lease_margin_s: float = 30.0
    patience_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a crawl: each section of the TOML file is a field, and each of its keys a field of that.

    A duration has the suffix ``_s``, and a size ``_bytes`` (:attr:`crawler.settings.keys.Key.field`).
    """

    identity: Identity = field(default_factory=Identity)
    store: StoreSettings = field(default_factory=StoreSettings)
    seeds: SeedSettings = field(default_factory=SeedSettings)
    output: OutputSettings = field(default_factory=OutputSettings)
    scope: ScopeSettings = field(default_factory=ScopeSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    discovery: DiscoverySettings = field(default_factory=DiscoverySettings)
    revisit: RevisitSettings = field(default_factory=RevisitSettings)
    updates: UpdateSettings = field(default_factory=UpdateSettings)
    traps: TrapSettings = field(default_factory=TrapSettings)
    politeness: PolitenessSettings = field(default_factory=PolitenessSettings)
    robots: RobotsSettings = field(default_factory=RobotsSettings)
    fetch: RequestSettings = field(default_factory=RequestSettings)
    workers: WorkerSettings = field(default_factory=WorkerSettings)
    sample: SampleSettings = field(default_factory=SampleSettings)

    @property
    def requests_before_pages(self) -> int:
        """The requests to a site for its robots.txt, and for its other files if the settings ask for them."""
        return 1 + self.discovery.sitemaps + self.robots.tdmrep + self.updates.rup

    @property
    def lease_s(self) -> float:
        """How long a worker's lease lasts, in seconds."""
        return self.fetch.total_timeout_s + self.workers.lease_margin_s
