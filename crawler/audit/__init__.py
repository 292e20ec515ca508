"""Replay the request log against the robots.txt versions and paces in force, and prove that nothing broke them."""
