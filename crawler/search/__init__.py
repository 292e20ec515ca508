"""Search in what was crawled: the text of pages, the index on it, queries, results."""
