from embits._version import __version__
