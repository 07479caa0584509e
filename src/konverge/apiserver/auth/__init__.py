"""Authentication and authorization: who a user is, and what the user may do."""
