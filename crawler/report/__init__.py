"""What a store tells people: its status, and everything known of one URL. Only reads."""
