"""Rules about gradients that arrive, but are NaN, infinite or zero."""
