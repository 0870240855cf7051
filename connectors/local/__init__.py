"""Records as files on this machine's disk, or one that is mounted there."""
