"""The operators in the form of Data-Juicer, which loads this file by its path."""

from data_juicer.ops.base_op import OPERATORS, Mapper

from benchmarks import operators


@OPERATORS.register_module("benchmark_upper_mapper")
class BenchmarkUpperMapper(Mapper):
    def process_single(self, sample):
        return operators.upper(sample)


@OPERATORS.register_module("benchmark_clean_mapper")
class BenchmarkCleanMapper(Mapper):
    def process_single(self, sample):
        return operators.clean(sample)
