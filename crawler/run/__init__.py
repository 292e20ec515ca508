"""``crawler run``: puts a crawl together from settings and seeds, shows it, and starts worker processes."""
