"""What should the endpoint be? Facts as data and pure functions over them; no AWS library."""
