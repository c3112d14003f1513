"""Two endpoints or two routing strategies side by side."""
