"""Discovery: what a client can ask this server for."""
