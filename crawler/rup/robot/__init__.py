"""The robot's side of the Remote Update Protocol: registrations, reports from a mailbox, and questions to servers.

``session`` puts a robot together on the store of a crawl. ``subscribe`` registers and reads mail, ``recovery`` asks for
what was lost, ``requests`` sends what both ask, and ``hints`` stores what is to be visited.
"""
