"""A small web on loopback. ``crawler demo`` crawls it, and the tests serve their pages with its server.

``pages`` describes sites, and ``server`` serves them. ``town`` makes those of the demonstration, ``web`` serves
it and knows what was promised to it, and ``commands`` crawls it and prints what came out.
"""
