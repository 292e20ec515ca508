"""A small web on loopback. ``crawler demo`` crawls it, and the tests serve their pages with its server."""
