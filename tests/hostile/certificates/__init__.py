"""The certificates of the hosts that speak TLS, made for these tests and used nowhere else.

``ca.pem`` is the authority that the crawler under test trusts. Each other file is a key with its certificate. All are
good until 2126, unless their name says otherwise.
"""

from __future__ import annotations

import ssl
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
AUTHORITY = FOLDER / "ca.pem"
#: In place of a certificate: the URLs of the host are https, but the server knows no TLS.
NO_TLS = "no-tls"


@cache
def context(name: str) -> ssl.SSLContext | None:
    """The server's side of TLS with the certificate ``name``. ``None`` if the server speaks plain text."""
    if name in ("", NO_TLS):
        return None
    name, _, quirk = name.partition("+")
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(FOLDER / f"{name}.pem")
    match quirk:
        case "old":
            made.set_ciphers("DEFAULT@SECLEVEL=0")
            made.minimum_version = made.maximum_version = ssl.TLSVersion.TLSv1
        case "client":
            made.verify_mode = ssl.CERT_REQUIRED
            made.load_verify_locations(AUTHORITY)
        case "sni":
            made.sni_callback = lambda *_: ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        case "alpn":
            made.set_alpn_protocols(["h2"])
    return made
