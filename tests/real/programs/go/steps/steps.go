// Package steps is how the programs report their steps: a line `ok <step>` each, and the first failure ends them.
package steps

import (
	"context"
	"fmt"
	"os"
	"time"
)

// Limit is how long a program may wait for anything to come true.
const Limit = 180 * time.Second

// Done says that a step has succeeded.
func Done(step string) { fmt.Println("ok", step) }

// Leave is done before a failure ends the program: what it has started must not outlive it.
var Leave = func() {}

// Must ends the program if there is an error.
func Must(err error, what string) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
		Leave()
		os.Exit(1)
	}
}

// Got is a value without an error.
func Got[T any](value T, err error) T {
	Must(err, fmt.Sprintf("%T", value))
	return value
}

// Check ends the program unless something holds.
func Check(holds bool, format string, arguments ...any) {
	if !holds {
		Must(fmt.Errorf(format, arguments...), "expected")
	}
}

// UntilNil tries again and again until there is no error; at its limit it reports the last one.
func UntilNil(ctx context.Context, what string, try func() error) {
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			Must(err, what)
		}
	}
}

// Until asks again and again until something holds.
func Until(ctx context.Context, what string, holds func() bool) {
	for !holds() {
		select {
		case <-ctx.Done():
			Must(ctx.Err(), what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
