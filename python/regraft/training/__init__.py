"""Trains networks on real images, with operators that `regraft synthesize --emit` wrote in place of
convolutions.

    python -m regraft.training operators/ --network resnet18 --data cifar100:cifar-100-python

The recipe is that of Syno's experiments (Zhuo, Su and others, "Syno: Structured Synthesis for
Neural Operators", ASPLOS 2025). Needs PyTorch; `torchvision/NAME` needs torchvision, and ImageNet
needs Pillow. Importing this package imports none of them.
"""
