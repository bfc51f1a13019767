"""A step of the ensemble in Python: what `run` returns is the step's output."""


def run(context):
    return context.input["text"].content.upper() + "!"
