"""`python -m crawler` is the `crawler` command."""

from crawler.cli import main

main()
