# The first instructions after reset: a stack, then C.
    .section .text.start, "ax"
    .globl _start
_start:
    la sp, stack_top
    call main
1:  j 1b
