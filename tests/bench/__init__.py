"""Benchmarks: what a page costs, how the stores grow, how fast a crawl starts and ends (`python -m tests.bench`)."""
