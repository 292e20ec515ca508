"""``crawler report``: a crawl as one HTML page that needs no network and trusts nothing that a site sent."""
