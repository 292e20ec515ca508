"""Checks a crawl against the rules: replays the request log with the robots.txt versions and paces in force."""
