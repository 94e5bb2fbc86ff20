"""The description of the API for programs: ``/openapi.json`` (docs/spec/http.md, "Description")."""
