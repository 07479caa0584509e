"""The parts of Go, and of Go libraries, that the API shows: how texts are read and written, and the errors about them.

A module is named after the Go package that it mirrors. `tools/go_answers` asks Go itself; its answers are test data.
"""
