"""Programs that the tests start with mpiexec."""
