// Package main does not compile: a Cleanup that removes the finalizer cannot ask to be called again.
package main

import (
	"time"

	"github.com/trimtab-dev/trimtab/loop"
)

func after() loop.CleanupOutcome { return loop.After(time.Second) }

func chained() loop.CleanupOutcome { return loop.CleanedUp().After(time.Second) }

func given() loop.CleanupOutcome { return loop.CleanedUp(time.Second) }

func main() { after(); chained(); given() }
