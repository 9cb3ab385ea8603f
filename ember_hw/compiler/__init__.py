"""The compiler: scf loops in, access-unit microcode and execute-side kernels out."""
