"""What runs here: users' wishes and the group's rounds made true on the task hosts of this worker."""
