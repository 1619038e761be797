"""Gaussian and Laplace noise on a sum over a pool of records: spectral, exact, pairwise and sampled bounds."""
