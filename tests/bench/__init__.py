"""Benchmarks (`python -m tests.bench`): the cost of a page, the growth of stores, the start and the end of a crawl."""
