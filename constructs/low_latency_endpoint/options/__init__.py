"""Every option once: name, kind, default, text, limit, example and bill stand in its field."""
