"""The robot's side of the Remote Update Protocol: registrations, reports from a mailbox, and questions to servers."""
