"""What `bench area` needs: tools of the ECP5, a top of few pins, cells by block."""
