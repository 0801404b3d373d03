"""`gradinspect check`: evidence is gathered while a program runs; rules judge it."""
