"""What tests stand on: throwaway databases, child processes, and an app whose table job bodies write."""
