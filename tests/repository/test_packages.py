"""A fixture of a directory ends with it only where the directory is a package; elsewhere pytest keeps it to the end."""

from tests.repository.files import ROOT


def test_every_directory_of_tests_is_a_package():
    tests = ROOT / "tests"
    with_tests = {
        directory for file in tests.rglob("*.py") for directory in file.parents if directory.is_relative_to(tests)
    }
    assert not [directory for directory in with_tests if not (directory / "__init__.py").exists()]
