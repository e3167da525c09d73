"""The OpenAPI document: valid, complete, fresh, and true of a live server."""
