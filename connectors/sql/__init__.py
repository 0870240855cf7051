"""What connectors to databases share: ``jdbc:`` URLs, engines, reflected tables, types, and columns in Connect's form."""
