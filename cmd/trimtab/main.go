// Command trimtab runs and shows Kubernetes operators on this machine.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for anything
	os.Exit(cli.Main(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
