"""The robot side of the Remote Update Protocol, on the store of a crawl."""
