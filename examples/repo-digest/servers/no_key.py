"""A server that cannot start: it says why on stderr and exits."""

import sys

sys.exit("no_key: WEATHER_API_KEY is not set")
