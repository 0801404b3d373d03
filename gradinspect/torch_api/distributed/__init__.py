"""What torch knows of the ranks of a job, and how one rank runs without the others."""
