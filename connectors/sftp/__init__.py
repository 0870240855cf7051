"""Records as files on an SFTP server."""
