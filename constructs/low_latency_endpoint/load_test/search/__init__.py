"""Running steps, judging them, finding the limit, and what the account says of them."""
