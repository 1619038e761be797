"""What trains models again and again: adapters for scikit-learn and torch, and training with DP-SGD."""
