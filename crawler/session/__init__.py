"""Puts a crawl together: ``crawl_session`` from settings and seeds, ``hooks`` from the functions of the user.

Every room that crawls begins here: the command ``run``, tasks of a round, the RUP robot, and the Python API.
``nothing_crawled`` tells them why a crawl brought nothing.
"""
