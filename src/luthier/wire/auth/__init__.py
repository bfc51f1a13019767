"""Credentials for the requests to servers: bearer tokens, signatures, and the two ways of OAuth."""
