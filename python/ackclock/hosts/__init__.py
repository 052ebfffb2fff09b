"""Other machines, reached by the user's own OpenSSH client: logins, keys and host keys are that client's business.

An agent is copied to a host, told what to do over that one connection, and leaves the host as it was.
"""
