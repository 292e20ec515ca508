"""Mail: sending by SMTP, reading from IMAP or a Maildir."""
