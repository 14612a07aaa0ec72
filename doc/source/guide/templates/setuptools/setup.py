from ptcore.utils.cpp_extension import BuildExtension, CppExtension
from setuptools import setup

setup(packages=["erfcx"], ext_modules=[CppExtension("erfcx._kernels", ["erfcx/kernels.cpp"])],
      cmdclass={"build_ext": BuildExtension})
