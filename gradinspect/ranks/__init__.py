"""The ranks of a distributed job: which one this process is, where they meet, and what one knows of the others."""
