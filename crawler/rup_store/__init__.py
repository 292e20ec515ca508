"""What a server of the Remote Update Protocol keeps: its registrations, modification log and outbox; and its tree."""
