"""What a request is: its user, its target, its way through the server, and what admission sees of it."""
