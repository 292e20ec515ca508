"""Mail: ``smtp`` sends reports, ``imap`` and ``maildir`` are the mailboxes from which the robot reads them."""
