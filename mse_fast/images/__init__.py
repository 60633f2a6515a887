"""Pictures: read them, classify them with Matrix-SE, and report the accuracy on the test set.

reader.py      official CIFAR-10 archives, folders and tar files of pictures, scikit-learn's digits
classifier.py  Matrix-SE without its readout, the mean over all cells, one linear layer
report.py      python -m mse_fast.images.report RUN --data PATH: test accuracy
"""
