"""The engine `linux`."""
