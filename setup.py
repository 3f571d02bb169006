"""The packages of the wheel; everything else about it is in pyproject.toml.

`config/` stays the one place of the configuration. The wheel holds a copy of it as `app/config`; a clone never does.
"""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages("src"), *find_packages(include=["app", "app.*"]), "spark_app.config"],
    package_dir={"": "src", "app": "app", "spark_app.config": "config"},
)
