"""For processes that tests start and do not fork: none of them outlives its test process."""

from __future__ import annotations

import shutil

#: In front of a command: the system kills it when the process that started it ends, however that ends.
BOUND = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()
