"""The primitives by theme, and the public functions made of them."""
