"""What each thread of the program made while one of them is recorded. Imports torch."""
