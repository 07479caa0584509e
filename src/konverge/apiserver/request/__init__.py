"""What a request is: its user, its target, its context, what it may ask of the server, and what admission sees."""
