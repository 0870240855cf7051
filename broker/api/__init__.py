"""How an API is declared and answered: the table of routes, the context of a request, answers that come later."""
