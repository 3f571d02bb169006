import pytest

from spark_app.stack_samples.spark_work import RecognizedWork, SparkWork, Work
from tests.unit.stack_samples.made import TASK, Taken

GENERATED = "org.apache.spark.sql.catalyst.expressions.GeneratedClass$GeneratedIteratorForCodegenStage1.processNext"
CODEGEN = "org.apache.spark.sql.catalyst.expressions.codegen"


def work(*stack: str) -> RecognizedWork | None:
    """What Spark does in a stack."""
    samples = Taken()
    samples.process()
    samples.add(1, *stack)
    return SparkWork(samples.done()).of(samples.done().stacks[0])


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("com.github.luben.zstd.ZstdOutputStreamNoFinalizer.compressStream", "compression"),
        ("org.apache.parquet.hadoop.codec.SnappyCompressor.compress", "compression"),
        ("org.apache.parquet.column.values.dictionary.DictionaryValuesWriter.writeBytes", "Parquet and ORC"),
        ("java.io.ObjectInputStream.readObject0", "deserialization"),
        ("com.esotericsoftware.kryo.Kryo.readClassAndObject", "deserialization"),
        ("com.esotericsoftware.kryo.serializers.FieldSerializer.write", "serialization"),
        ("com.esotericsoftware.kryo.util.IdentityObjectIntMap.get", None),
        ("org.codehaus.janino.UnitCompiler.compile", "code generation"),
        (f"{CODEGEN}.CodeGenerator$.compile", "code generation"),
        (f"{CODEGEN}.UnsafeRowWriter.write", None),
        ("org.apache.spark.sql.catalyst.analysis.Analyzer.execute", "planning"),
        ("org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec.$anonfun$reOptimize$1", "planning"),
        ("org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec.getFinalPhysicalPlan", None),
        ("org.apache.spark.sql.execution.UnsafeExternalRowSorter$1.advanceNext", "sorting"),
        ("org.apache.spark.sql.execution.UnsafeExternalRowSorter.sort", None),
        ("java.util.zip.ZipFile$Source.getEntryPos", "class loading"),
        (GENERATED, None),
        ("loads@pyspark/serializers.py:5", "deserialization"),
        ("CPickleSerializer.dumps@pyspark/serializers.py:5", "serialization"),
        ("dumps@json/__init__.py:5", None),
    ],
)
def test_a_function_tells_its_work(function: str, expected: Work | None) -> None:
    """Also below functions that the table does not have; code that Spark generated has no work of its own."""
    name = function.partition("@")[0]
    assert work(TASK, GENERATED, function, "a.Leaf.call") == (RecognizedWork(expected, name) if expected else None)


def test_the_innermost_class_decides() -> None:
    """A block that is decompressed while an object is read is compression."""
    found = work(TASK, "java.io.ObjectInputStream.readObject", "net.jpountz.lz4.LZ4JNI.LZ4_decompress_safe", "a.B.c")
    assert found == RecognizedWork("compression", "net.jpountz.lz4.LZ4JNI.LZ4_decompress_safe")
