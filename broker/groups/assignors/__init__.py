"""Who is assigned what: the server-side assignors, each a pure function (``spec.Assignor``)."""
