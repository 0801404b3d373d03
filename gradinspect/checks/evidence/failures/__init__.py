"""The call of torch whose error ended the program: what it was given, and in which layer it failed."""
