"""What the arguments of single calls show of a mistake: labels, masks, terms that are the same twice."""
