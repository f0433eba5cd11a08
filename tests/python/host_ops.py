"""Ops that only the devices of the host have; on others they run by a fallback."""
MATRICES = {"cholesky", "det", "eigh", "qr", "solve", "svd", "triangular_solve"}
OF_MATRICES = MATRICES | {"inv"}  # whose body is a solve
