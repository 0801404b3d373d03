"""How the boxes of a picture are filled."""
