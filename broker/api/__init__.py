"""How an API is declared and answered: the table of routes, the context of a request, outcomes that come later."""
