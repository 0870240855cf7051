"""Assembly: the events service and the trigger service, with their listeners."""
