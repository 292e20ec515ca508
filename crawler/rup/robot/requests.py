"""Requests of the robot: ``/rupinfo.txt``, and the actions of the CGI that it names."""

from __future__ import annotations

from urllib.parse import urlencode

from crawler.clock import Clock
from crawler.engine.permission import Closed
from crawler.engine.polite_client import PoliteClient
from crawler.errors import CrawlerError, Reference
from crawler.model import Failed, Fetched, Purpose, Redirected, Request
from crawler.reasons import DNS_KINDS, ErrorKind
from crawler.rup.protocol import report
from crawler.rup.protocol.forms import GetIndex, RupRequest, write_form
from crawler.rup.protocol.info import MAX_BYTES, PATHS, FoundInfo, NoInfo, read_info
from crawler.terminal_text import shown

_ANSWER_BYTES = 64 * 1024
_NO_POST = (405, 501)
#: Not a broken connection: it may break after the request.
_NEVER_SENT = DNS_KINDS | {ErrorKind.TLS, ErrorKind.CERTIFICATE, ErrorKind.ADDRESS}


class NotOffered(CrawlerError):
    """A site offers no updates, or none that the robot may use."""


class NoAnswer(CrawlerError):
    """A server refused a request or did not answer. ``unclear``: it may have carried out the request all the same."""

    def __init__(self, *why: str | Reference, status: int | None = None, unclear: bool = False) -> None:
        super().__init__(*why)
        self.status = status
        self.unclear = unclear


async def find_offer(client: PoliteClient, site: str, clock: Clock) -> FoundInfo:
    """Ask a site for ``/rupinfo.txt``, and for ``/rupinfo.tex`` if that does not exist. Raises :class:`NotOffered`."""
    for path in PATHS:
        url = f"{site}{path}"
        request = Request(url, Purpose.RUP, max_bytes=MAX_BYTES, truncate=True, any_type=True)
        result = await client.send(request)
        match result:
            case Fetched():
                info = read_info(result.body, url)
                if isinstance(info, NoInfo):
                    raise NotOffered(f"{url} is not a rupinfo file: {info.why}")
                return FoundInfo(url, clock.now(), info)
            case Failed() if result.status in (404, 410):
                continue
            case _:
                raise NotOffered(*_failure_text(url, request, result))
    raise NotOffered(f"{site} offers no updates: it has neither {' nor '.join(PATHS)}")


async def ask(client: PoliteClient, cgi: str, asked: RupRequest) -> bytes:
    """Send a request and return the body of the answer. The request is a POST, or a GET if the server refuses POST.

    A request without an answer is not repeated: a second Register could make a second registration. Raises
    :class:`NoAnswer`.
    """
    most = report.MAX_BYTES if isinstance(asked, GetIndex) else _ANSWER_BYTES
    form = write_form(asked)
    request = Request(cgi, Purpose.RUP, max_bytes=most, any_type=True, form=form)
    result = await client.send(request)
    if isinstance(result, Failed) and result.status in _NO_POST:
        hidden = tuple((name, "-" if name == "RegistrationKey" else value) for name, value in form)
        request = Request(
            _with_query(cgi, form), Purpose.RUP, max_bytes=most, any_type=True, shown_url=_with_query(cgi, hidden)
        )
        result = await client.send(request)
    if isinstance(result, Fetched):
        return result.body
    why = _failure_text(cgi, request, result)
    if isinstance(result, Closed):
        raise NoAnswer(*why)
    status = result.status
    is_refused = status is not None and (400 <= status < 500 or status == 501)
    is_clear = isinstance(result, Failed) and (is_refused or result.kind in _NEVER_SENT)
    raise NoAnswer(*why, status=status, unclear=not is_clear)


def _with_query(url: str, fields: tuple[tuple[str, str], ...]) -> str:
    return f"{url}{'&' if '?' in url else '?'}{urlencode(fields)}"


def _failure_text(url: str, request: Request, result: object) -> list[str | Reference]:
    """The parts of the error for an answer that is no document. They never contain the key of a registration."""
    match result:
        case Closed(why):
            return [why]
        case Redirected():
            to = f" to {shown(result.location)}" if request.shown_url is None else ""
            return [f"{url} redirects{to}, which is not followed"]
        case Failed():
            return [f"{url}: ", *result.error.parts]
        case _:
            return [f"{url}: the answer does not match the request"]
