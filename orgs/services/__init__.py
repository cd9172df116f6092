"""What changes organizations, members and keys. Each change of a grant moves the access epoch, and
is a line in the audit log.
"""
