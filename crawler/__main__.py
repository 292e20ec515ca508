"""The ``crawler`` command, also as ``python -m crawler``."""

import gc
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run it; Ctrl-C counts as one from the first moment, also while the commands are still being loaded."""
    gc.set_threshold(100_000, 50, 50)  # every command makes many objects and hardly any cycles, from loading modules on
    try:
        from crawler.cli import main as run
    except KeyboardInterrupt:
        sys.exit(3)
    run()


if __name__ == "__main__":
    main()
