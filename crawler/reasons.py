"""How the reasons begin by which something is decided later: what other options bring back, what a better offer of the
same URL lifts, what a sample counts. Who writes such a reason and who reads it name it here.

What follows is for people, and may change; a beginning that changes parts with what is in stores already.
"""

from __future__ import annotations

SCOPE = "scope:"
CONTACT = "contact:"
DEPTH = "depth:"
NOFOLLOW = "nofollow:"
ROBOTS = "robots:"
MIRROR = "mirror"
TRAP = "trap:"
TYPE = "type:"
ADDRESS = "address:"
REDIRECTS = "redirects:"
TOO_LARGE = "too large:"
SAMPLE = "sample:"
#: Of a URL that met a bug of ours.
FAULT = "a fault of the crawler"

#: Of an answer whose body was not read, for what its headers said of it.
UNWANTED_TYPE = "content type"
#: Of a page that was kept unread, in its note.
NOT_PARSED = "not parsed"
