"""Other machines, reached by the user's OpenSSH client, which handles logins, keys and host keys.

An agent is copied to a host, controlled over that one connection, and leaves the host unchanged.
"""
