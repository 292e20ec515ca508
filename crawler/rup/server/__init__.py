"""The server's side of the Remote Update Protocol: store, document tree, HTTP, and the reports to send.

``tree`` finds the changes of the documents, ``store`` keeps them with the registrations, ``publish`` makes and sends
the reports. ``web`` takes the requests of robots, and ``responder`` answers them. ``own_robots`` says which paths a
robot may know.
"""
