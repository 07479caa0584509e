"""A client of S3-compatible storage, as far as backups need it, on the standard library alone.

`signature` signs requests (AWS Signature Version 4; pure), `connection` sends them, tries again, and says what is wrong
in the words of an operator, and `objects` stores, reads and deletes.
"""
