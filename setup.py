"""The packages of the wheel; everything else about it is in pyproject.toml.

What the program reads or writes beside its code stays where it is in a clone: the configuration in `config/`, which is
`spark_app/config` in the wheel, and the other files of the compose stack, which are in `spark_app/stack`, so that
`spark-app init --stack` can write them. A clone has neither folder.
"""

from setuptools import find_packages, setup

setup(
    script_name="setup.py",  # so that it is no module of spark_app.stack
    packages=[*find_packages("src"), "spark_app.config", "spark_app.stack"],
    package_dir={"": "src", "spark_app.config": "config", "spark_app.stack": "."},
)
