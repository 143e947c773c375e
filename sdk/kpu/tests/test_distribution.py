"""The distribution that pip sees and the package that Python imports are one thing."""

from importlib import metadata

import kpu


def test_the_distribution_and_the_package_agree_on_the_version():
    assert metadata.version("kpu-client") == kpu.__version__
