"""A model whose preprocess is pure Python and whose predict costs nothing: what it holds is the GIL."""


class PythonPreprocess:
    """About half a millisecond of Python a request."""

    def preprocess(self, payload):
        total = 0
        for number in range(8_000):
            total = (total * 31 + number) % 1_000_003
        return total

    def predict(self, inputs):
        return list(inputs)

    def example(self):
        return [0.0]
