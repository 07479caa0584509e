"""Certificates that the replicas of an operator issue and renew by themselves, in a Secret that they share."""
