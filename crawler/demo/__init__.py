"""A small web of our own on loopback: what ``crawler demo`` crawls, and what the tests serve their pages with."""
