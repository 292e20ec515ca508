"""Mail: sending by SMTP."""
