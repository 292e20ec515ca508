"""The command line. A command reads its options, calls one function, prints the result and sets the exit code.

``shared`` has the table of commands and how errors end; ``on_store`` opens a store and shows a result. Options:
``options``, ``secrets``. What is printed: ``output``, ``console``, ``layout``, ``progress``, ``templates``, ``logs``.
What runs until a signal: ``signals``, ``serving``, ``http_listener``.
"""

from crawler.cli.shared import main

__all__ = ["main"]
