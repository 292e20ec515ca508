"""The robot's side of the Remote Update Protocol: registrations, reports from a mailbox, and questions to servers.

``session`` puts a robot together on the store of a crawl. ``subscribe`` registers, reads mail and asks for what was
lost, ``requests`` sends its questions, and ``hints`` stores what is to be visited.
"""
