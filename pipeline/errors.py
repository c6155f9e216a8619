"""The exception for bad input, and the warning for input that is used with a change."""


class InputError(Exception):
    """Bad input. The message is one line that says what is wrong and what to do.

    The command line prints the message and exits with code 2; a library user may catch it.

    Args:
        message: Printed in one line; line breaks become spaces.
    """

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class InputWarning(UserWarning):
    """Input that is used with a change. The command line prints the message once, in one line."""
