"""The packages of the wheel; everything else about it is in pyproject.toml.

`config/` stays the one place of the configuration. The wheel holds what the program reads of it as
`spark_app/config`; a clone never does.
"""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages("src"), "spark_app.config"],
    package_dir={"": "src", "spark_app.config": "config"},
)
