"""The Job controller: pods that run until enough of them have succeeded, or too many have failed."""
