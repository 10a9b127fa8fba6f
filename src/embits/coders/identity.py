"""Where `coder_checksum` was."""

from embits.coders.base import coder_checksum as coder_checksum
