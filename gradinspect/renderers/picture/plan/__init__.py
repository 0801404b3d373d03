"""Choose what a picture shows."""
