"""The one exception that means: the input is bad, and here is what to do about it; and a warning."""


class InputError(Exception):
    """Bad input. The message is one line that says what is wrong and what to do.

    The command line prints it as it is and exits with code 2; a library user may catch it.
    """

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class InputWarning(UserWarning):
    """Input that is used, but not as it is. The command line prints the message in one line, once."""
