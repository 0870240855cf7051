"""The console: pages about a platform, rendered here and refreshed by htmx. It talks to the REST and Kafka faces only.

To add a page:

- a module in ``pages/`` with ``routes(console) -> list[Route]``; ``console.route(path, handler)`` makes each, and the handler takes a
  ``Visit`` and returns a response. ``pages/overview.py`` is the example;
- an entry in ``PAGES`` (``pages/__init__.py``), which puts it into the navigation where the faces that it needs are configured;
- a template that extends ``layout.html``. The part that refreshes itself is a template of its own that the page includes, with a route
  of its own (``/overview/live``) for ``hx-get`` and ``hx-trigger="every 5s"``. ``macros.html`` has states, buttons and troubles.

What a handler has:

- ``visit.faces``: clients with the rights of the user. ``await visit.faces.connect.call("GET", "/connectors")``, likewise ``registry``;
  ``async with Admin(visit.faces.kafka)``; ``visit.faces.registry_client()`` and ``visit.faces.events_client()``, which block, so within
  ``asyncio.to_thread``; ``await visit.faces.kept(name, ask)`` keeps a list for two seconds, ``visit.faces.forget()`` drops such lists
  after a change.
- ``visit.page(template, **values)``; ``visit.query``, ``visit.parameters``, ``await visit.form()``; ``visit.redirect(path)`` after a POST;
  ``visit.audit(action, **what)`` with each change.
- Errors: raise a TidegateError, or let a face's pass. It becomes a page, or the part that htmx asked for, with its message and status.
- The edge (``edge.py``) checks login, site and token before the handler; a form needs ``{{ csrf(visit) }}`` from ``macros.html``, and htmx
  sends the token by itself.
- ``tidegate.records`` decodes records and reads positions, ``tidegate.clients`` has workers, counts and credentials.

Templates escape everything. Scripts and styles stand in ``static/`` only: the content security policy refuses inline ones, so there is no
``style=`` and no ``onclick=``. Heavy imports (``broker.client``, ``registry``) stand within the functions that need them.
"""
