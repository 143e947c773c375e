"""The distribution that pip sees and the package that Python imports are one thing."""

from importlib import metadata

import openshift_ai_sdk


def test_the_distribution_and_the_package_agree_on_the_version():
    assert metadata.version("openshift-ai-sdk") == openshift_ai_sdk.__version__
