"""The engine: the crawl and nothing else. It claims politeness groups, fetches, asks the rules what follows, and
commits once. Pauses are waited for here and nowhere else.
"""
